"""A process that a service starts for what it must not load or wait for itself: pyarrow, a connection that hangs.

It gets one JSON document on stdin, where no other user reads it as he reads a command line, and answers with one JSON
object a line. One that says nothing for too long is killed: whatever it does must survive that. Its memory has a limit:
what its peer sends may have no end.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from zombiescope.agent.child import exit_text
from zombiescope.base import json as _json
from zombiescope.base import python as _python
from zombiescope.base.errors import UserError

TERM_S = 3.0
LIMIT_S = 10.0
"""To start it and to end it, beside the time for which it may be silent."""
LINE_BYTES = 1 << 20
MEMORY_BYTES = 2048 << 20
"""Of its own heap, stacks and anonymous mappings: as of the recorder's helpers."""
STOPPED_S = 5.0
_POLL_S = 0.5


class WorkerError(UserError):
    """It ended in another way than by being done."""


def run(
    module: str,
    arguments: list[str],
    document: Mapping[str, Any],
    said: Callable[[dict[str, Any]], None],
    stop: threading.Event,
    silence_s: float,
) -> None:
    """Until it ends or `stop` is set. Raises WorkerError, OSError."""
    process = subprocess.Popen(  # noqa: S603  our own interpreter, our own module
        _python.module(module, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=_python.brief_environment(), process_group=0,
    )  # fmt: skip
    try:
        with suppress(OSError):  # it has ended already, or may not be limited here
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        _hand_over(process, document)
        silent = _listen(process, said, stop, silence_s, module)
        if silent:
            raise WorkerError(f"{module} said nothing for {silence_s:g} s and was ended", "it is started again")
        if not stop.is_set() and (code := process.wait(TERM_S)) != 0:
            raise WorkerError(f"{module} {exit_text(code)}", "its own line above says why; it is started again")
    finally:
        _end(process)


def _hand_over(process: subprocess.Popen[bytes], document: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(json.dumps(document).encode())


def _listen(
    process: subprocess.Popen[bytes],
    said: Callable[[dict[str, Any]], None],
    stop: threading.Event,
    silence_s: float,
    module: str,
) -> bool:
    """Whether it fell silent; False: it closed its output, or we were told to stop. Raises WorkerError where it is
    stopped: that need not be waited out."""
    assert process.stdout is not None
    descriptor, rest, heard_s = process.stdout.fileno(), b"", time.monotonic()
    while not stop.is_set():
        if not select.select([descriptor], [], [], _POLL_S)[0]:
            silent_s = time.monotonic() - heard_s
            if silent_s > silence_s:
                return True
            if silent_s > STOPPED_S and _is_stopped(process.pid):
                raise WorkerError(f"{module} (process {process.pid}) is stopped and was ended", "it is started again")
            continue
        data = os.read(descriptor, 65536)
        if not data:
            return False
        heard_s = time.monotonic()
        *lines, rest = (rest + data)[-LINE_BYTES:].split(b"\n")
        for line in lines:
            with suppress(ValueError):
                document = _json.loads(line)
                if isinstance(document, dict):
                    said(document)
    return False


def _is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] in ("T", "t")
    except (OSError, IndexError):
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(TERM_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()
