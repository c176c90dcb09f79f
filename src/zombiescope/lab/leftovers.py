"""Everything that bears the laboratory's name on this machine, and its removal.

Cgroups named zombiescope-lab-* in any hierarchy with the processes in them, units of systemd of that name, recorders
that write into a directory of that name, and such directories on disk and in /dev/shm. Mounts and network namespaces of
scenarios have no name at all: they are gone with their processes. Used at the end of every run, and by `lab clean` for
what a kill -9 left.
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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from zombiescope.kernel import cgroup
from zombiescope.lab.sandbox import MARK, UNITS

GONE_S = 20.0
_SHM = Path("/dev/shm")  # noqa: S108  this is the tmpfs


@dataclass(frozen=True, slots=True)
class Leftovers:
    processes: tuple[int, ...]
    cgroups: tuple[Path, ...]
    directories: tuple[Path, ...]
    units: tuple[Path, ...] = ()
    """Files of units."""

    def __bool__(self) -> bool:
        return bool(self.processes or self.cgroups or self.directories or self.units)

    def __str__(self) -> str:
        counts = {
            "processes": len(self.processes),
            "cgroups": len(self.cgroups),
            "directories": len(self.directories),
            "units": len(self.units),
        }
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing"


def find(scenario: str = "") -> Leftovers:
    """Of one scenario, or of all."""
    mark = f"{MARK}{scenario}"
    roots = [
        entry for mount in _mounts() for entry in _entries(mount) if _is(entry.name, mark, scenario) and entry.is_dir()
    ]
    bears = f"{mark}-" if scenario else mark
    directories = [
        entry
        for place in {Path(tempfile.gettempdir()), Path("/tmp"), _SHM}  # noqa: S108
        for entry in _entries(place)
        if entry.name.startswith(bears)
    ]
    units = [entry for entry in _entries(UNITS) if entry.name.startswith(bears) and entry.suffix == ".service"]
    running = {pid for root in roots for pid in _processes_in(root)} | (set() if scenario else set(_recorders()))
    return Leftovers(tuple(sorted(running)), tuple(sorted(roots)), tuple(sorted(directories)), tuple(sorted(units)))


def remove(found: Leftovers) -> list[str]:
    """Ends units and processes, then removes files, then cgroups; what would not go is reported."""
    deadline = time.monotonic() + GONE_S
    _stop(found.units)
    _end(found, deadline)
    for directory in found.directories:
        _swap_off(directory)
        shutil.rmtree(directory, ignore_errors=True)
    for root in found.cgroups:
        _empty(root)
        _remove_tree(root, deadline)
    return [f"{path} is still there" for path in (*found.cgroups, *found.directories, *found.units) if path.exists()]


def _is(name: str, mark: str, scenario: str) -> bool:
    return name == mark if scenario else name.startswith(mark)


def _mounts() -> list[Path]:
    return [Path(one.mount) for one in cgroup.hierarchies() if one.mount is not None]


def _entries(directory: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(directory)]
    except OSError:
        return []


def _below(root: Path) -> Iterator[Path]:
    """The cgroup and all below it, children first."""
    found = [root]
    for directory in found:  # grows while it is walked: parents before their children
        found += [entry for entry in _entries(directory) if entry.is_dir()]
    yield from reversed(found)


def _processes_in(root: Path) -> list[int]:
    found: list[int] = []
    for directory in _below(root):
        with suppress(OSError):
            found += [int(pid) for pid in (directory / "cgroup.procs").read_text().split()]
    return [pid for pid in found if pid != os.getpid()]


def _recorders() -> Iterator[int]:
    """Of `lab run`: their command line names the directory that they write."""
    for entry in _entries(Path("/proc")):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"zombiescope.recorder" in words and any(f"/{MARK}".encode() in word for word in words):
                yield int(entry.name)


def _stop(units: tuple[Path, ...]) -> None:
    """The manager would start them again, so they are its to stop."""
    for unit in units:
        _systemctl("stop", unit.name)
        unit.unlink(missing_ok=True)
    if units:
        _systemctl("daemon-reload")
        _systemctl("reset-failed", *(unit.name for unit in units))


def _swap_off(directory: Path) -> None:
    """A swap file of a scenario; without any this reads one small file."""
    with suppress(OSError, IndexError):
        for line in Path("/proc/swaps").read_text().splitlines()[1:]:
            if line.startswith(f"{directory}/"):
                ctypes.CDLL(None).swapoff(line.split()[0].encode())


def _systemctl(*words: str) -> None:
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(["systemctl", "--quiet", *words], capture_output=True, timeout=GONE_S, check=False)  # noqa: S603, S607


def _end(found: Leftovers, deadline: float) -> None:
    """A process may fork while it is looked for, so until none is left."""
    chosen = set(found.processes)
    while time.monotonic() < deadline:
        for pid in chosen:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        chosen = {pid for root in found.cgroups for pid in _processes_in(root)} | {
            pid for pid in found.processes if _lives(pid)
        }
        if not chosen:
            return
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in ("Z", "X")


def _empty(root: Path) -> None:
    """Page cache that was charged to it would keep it as a zombie."""
    for file, text in (("memory.force_empty", "0"), ("memory.reclaim", str(1 << 30))):
        with suppress(OSError):
            if (root / file).exists():
                (root / file).write_text(text)


def _remove_tree(root: Path, deadline: float) -> None:
    for directory in _below(root):
        while directory.exists():
            try:
                directory.rmdir()
            except FileNotFoundError:
                break
            except OSError:  # a moment after its last process has gone
                if time.monotonic() > deadline:
                    return
                time.sleep(0.02)
