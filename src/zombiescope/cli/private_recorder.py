"""A recorder of a command's own, in memory where there is room, small, and gone afterwards.

It does not touch a recorder that runs on this machine: it writes a directory of its own, its rings are its own, and it
announces itself in a runtime directory of its own.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zombiescope.base import interrupt
from zombiescope.base import python as _python
from zombiescope.cli import progress
from zombiescope.cli.failure import Failure
from zombiescope.cli.record import configuration, recorder_arguments
from zombiescope.kernel import process as kernel_process
from zombiescope.store import locate

_MAX_BYTES = 64 * 10**6
_START_S = 60.0
_LIVE_DIAGNOSIS = "zombiescope.diagnosis.standby"
_IDLE_CHECK_S = 1.0
_STOP_S = 10.0
_SHM = "/dev/shm"  # noqa: S108  a private directory is made in it
_LOOK = "'zombiescope record --for 10s' says more"
_libc = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class PrivateRecorder:
    """`home` is the directory that it writes."""

    home: Path
    process: subprocess.Popen[bytes]

    @property
    def node_dir(self) -> Path:
        return next(self.home / f"node={node}" for node in locate.nodes_in(self.home))

    def ended(self) -> bool:
        """Whether it has ended in order. Raises Failure when it ended otherwise."""
        code = self.process.poll()
        if code:
            raise Failure(f"the recorder ended early: {self.last_words()}", _LOOK)
        return code is not None

    def wait_for_live_diagnosis(self, limit_s: float) -> bool:
        """Until its live diagnosis has loaded and waits for work: that takes a second, and most of a minute on an
        emulated machine. False if it has not within the limit, or the recorder has none."""
        deadline, before_ns = time.monotonic() + limit_s, None
        while time.monotonic() < deadline and not self.ended():
            pid = _child_running(self.process.pid, _LIVE_DIAGNOSIS)
            used_ns = None if pid is None else _cpu_ns_of_sleeper(pid)
            if used_ns is not None and used_ns == before_ns:
                return True
            before_ns = used_ns
            time.sleep(_IDLE_CHECK_S)
        return False

    def last_words(self) -> str:
        said = (self.home / "stderr").read_text(errors="replace").strip().splitlines()
        return said[-1] if said else f"exit {self.process.returncode}"


@contextmanager
def private_recorder(name: str, **changes: Any) -> Iterator[PrivateRecorder]:
    """A recorder that has begun to write when this is entered; `changes` are to what `record` does by itself."""
    home = Path(tempfile.mkdtemp(prefix=f"zombiescope-{name}-", dir=_memory()))
    try:
        with _started(home, changes) as recorder:
            with progress.shown("starting a recorder"):
                _wait_for_data(recorder)
            yield recorder
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _child_running(parent: int, module: str) -> int | None:
    """The pid of the child process that runs this Python module."""
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        stat = kernel_process.read_stat(pid)
        if stat is not None and stat.ppid == parent:
            found = kernel_process.read(pid)
            if found is not None and module in (found.cmdline or "").split():
                return pid
    return None


def _cpu_ns_of_sleeper(pid: int) -> int | None:
    """CPU time of a process that sleeps; None for one that runs, waits for a disk, or is gone."""
    stat = kernel_process.read_stat(pid)
    if stat is None or stat.state != "S":
        return None
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _memory() -> str | None:
    """A directory that is held in memory and has room; None: the usual temporary one, as where TMPDIR names it."""
    try:
        there = os.statvfs(_SHM)
    except OSError:
        return None
    room = there.f_bavail * there.f_frsize >= 2 * _MAX_BYTES and os.access(_SHM, os.W_OK | os.X_OK)
    return _SHM if room and "TMPDIR" not in os.environ else None


@contextmanager
def _started(home: Path, changes: dict[str, Any]) -> Iterator[PrivateRecorder]:
    config = configuration(dir=str(home), max_bytes=_MAX_BYTES, quiet=True, **changes)
    # Under a runtime directory of its own, nobody mistakes it for the machine's recorder.
    environment = _python.steady_environment() | {"ZOMBIESCOPE_RUNTIME_DIR": str(home / "run")}
    with (home / "stderr").open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603  our own interpreter, our own module
            recorder_arguments(config),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
            preexec_fn=_end_with_us,
        )
    try:
        yield PrivateRecorder(home, process)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end_with_us() -> None:
    """A command that is killed must not leave a recorder behind (PR_SET_PDEATHSIG). A Ctrl-C waits until it runs."""
    interrupt.hold()
    _libc.prctl(1, signal.SIGTERM)


def _wait_for_data(recorder: PrivateRecorder) -> None:
    deadline = time.monotonic() + _START_S
    home = recorder.home
    while not any((home / f"node={node}" / "node.json").exists() for node in locate.nodes_in(home)):
        if recorder.process.poll() is not None:
            raise Failure(f"the recorder could not start: {recorder.last_words()}", _LOOK)
        if time.monotonic() > deadline:
            raise Failure(f"the recorder wrote nothing in {_START_S:.0f} s", _LOOK)
        time.sleep(0.05)
