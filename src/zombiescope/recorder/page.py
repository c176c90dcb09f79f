"""The web page of `zombiescope up` as the recorder sees it: a child on a socket that stays open, started again when it
ends.

`up` opens the socket and becomes the recorder, which inherits it; whoever connects while no page runs waits a second.
The token comes through a file in memory (memfd), because everybody reads command lines. What the page costs is not
counted as the recorder's.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from zombiescope.base import json as _json
from zombiescope.base import python as _python
from zombiescope.recorder.piped_process import MEGABYTE, SILENT_S, PipedProcess, Restarts

MODULE = "zombiescope.web"
NAME = "page"
LOADING_S = 30.0
"""It loads the whole diagnosis before it answers."""
FIRST_WAIT_US, MOST_WAIT_US = 1_000_000, 60_000_000
READ_BYTES = 65536
MOST_SECRET = 1 << 16
END_S = 3.0
_SOCKET = 3


@dataclass(frozen=True, slots=True)
class PageSettings:
    """What `up` hands over. `lines` are for people, once it is known that something is recorded."""

    socket: int
    listen: tuple[str, int]
    token: str | None
    open_url: str | None
    lines: tuple[str, ...]


def settings(given: dict[str, Any]) -> PageSettings:
    """Takes over the descriptors {"socket", "secret"}: no other child inherits them. Raises OSError, ValueError."""
    with os.fdopen(given["secret"], "rb") as file:
        file.seek(0)
        secret = _json.loads(file.read(MOST_SECRET))
    os.set_inheritable(given["socket"], False)
    address, port = given["listen"]
    return PageSettings(given["socket"], (address, port), secret["token"], secret["open"], tuple(secret["lines"]))


class PageProcess(PipedProcess):
    MEMORY_BYTES: ClassVar = 4096 * MEGABYTE

    def __init__(self, given: PageSettings, directory: Path, node: str, module: str = MODULE) -> None:
        super().__init__(NAME)
        self._given = given
        self._about = {"dir": str(directory), "node": node, "listen": list(given.listen), "socket": _SOCKET}
        self._module = module
        self._restarts = Restarts(FIRST_WAIT_US, MOST_WAIT_US)

    def second(self, now_us: int) -> None:
        """Raises OSError when it cannot be started."""
        if self._pid is None and self._restarts.is_due(now_us):
            self._restarts.hold(now_us)
            self._start()
        elif self._pid is not None:
            self._hear(READ_BYTES)
            for line in self._lines():
                self._message(line)
            self._reaped()

    def _start(self) -> None:
        about = {"pid": os.getpid(), **self._about}
        given = _python.environment()
        environment = {name: value for name, value in given.items() if _python.STEADY.get(name) != value}
        self.silent_s, self.kill_s = LOADING_S, 3 * LOADING_S
        self._spawn(_python.module(self._module, json.dumps(about)), environment, {_SOCKET: self._given.socket})
        shown = self._given.open_url if self.runs == 1 else None
        with suppress(BrokenPipeError, BlockingIOError):
            os.write(self._to, json.dumps({"token": self._given.token, "open": shown}).encode())
        os.close(self._to)
        self._to = -1

    def _beats(self, said: dict[str, Any]) -> None:
        if said.get("stage") == "loading":
            self._lives()
            return
        self.silent_s, self.kill_s = SILENT_S, LOADING_S
        self._restarts.worked()
        self._worked()

    def stop(self) -> None:
        if self._pid is not None:
            self._signal(signal.SIGTERM)
            if not self._gone_within(END_S):
                self._signal(signal.SIGKILL)
                self._gone_within(END_S)
            self._close()
        with suppress(OSError):
            os.close(self._given.socket)
