"""Stops every process of a cgroup where it is, and lets it go on: nothing is ended, nothing is lost.

v2: cgroup.freeze (v5.2, 76f969e8948d); where a kernel has it not but the cpu controller is on, cpu.max of a thousandth
of a CPU, which is put back. v1: freezer.state of the freezer hierarchy, where the suspect has a directory
there (containers do; systemd makes none for its units). Else SIGSTOP to each process, again until none is new: a
parent sees that, and a supervisor that waits for its children may react.

What was frozen is described by a Frozen, which can be stored and which anybody can thaw. Processes are known by number
and start time, so that a number that was given again is left alone.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from zombiescope.base import json as _json
from zombiescope.fix import signals
from zombiescope.kernel.cgroup import Hierarchy, hierarchies, of_controller
from zombiescope.kernel.process import read_stat
from zombiescope.kernel.procfile import names_in, read_file

FREEZE_S = 10.0
ROUNDS = 20
_HARDLY = "1000 1000000"
"""A thousandth of a CPU: the least quota, of the longest period."""
_WRITES = {"freeze": ("cgroup.freeze", "1"), "freezer": ("freezer.state", "FROZEN"), "cpu.max": ("cpu.max", _HARDLY)}
_THAWS = {"freeze": "0", "freezer": "THAWED"}
SHORTEST_ID = 12
"""Of a container: a shorter one may be in other names too."""


@dataclass(frozen=True, slots=True)
class Frozen:
    kind: str
    """freeze or cpu.max (v2), freezer (v1) or signals."""
    directory: str
    """Of the cgroup: in the freezer's hierarchy, or where its processes are listed."""
    processes: tuple[tuple[int, int], ...] = ()
    """(pid, start time) of those that were sent SIGSTOP."""
    before: str = ""
    """What cpu.max said."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Frozen:
        made = _json.loads(text)
        processes = tuple((pid, start) for pid, start in made["processes"])
        return cls(made["kind"], made["directory"], processes, str(made.get("before", "")))


def plan(cgroup: str, found: tuple[Hierarchy, ...] | None = None) -> Frozen | None:
    """How the cgroup of this path can be frozen; None where it is nowhere."""
    found = hierarchies() if found is None else found
    freezer = of_controller("freezer", found)
    for hierarchy in found:
        place = _place(hierarchy, cgroup)
        if hierarchy.version == 2 and place and os.access(f"{place}/cgroup.freeze", os.W_OK) and pids(place):
            return Frozen("freeze", place)
        if hierarchy.version == 2 and place and os.access(f"{place}/cpu.max", os.W_OK) and pids(place):
            return Frozen("cpu.max", place, before=(read_file(f"{place}/cpu.max") or b"max").decode().strip())
    place = _place(freezer, cgroup)
    if place and os.access(f"{place}/freezer.state", os.W_OK) and pids(place):
        return Frozen("freezer", place)
    places = (_place(hierarchy, cgroup) for hierarchy in found)
    return next((Frozen("signals", place) for place in places if place and pids(place)), None)


def _place(hierarchy: Hierarchy | None, cgroup: str) -> str | None:
    names = cgroup.strip("/").split("/")
    if hierarchy is None or hierarchy.mount is None or names == [""] or ".." in names:
        return None
    place = "/".join([hierarchy.mount, *names])
    return place if Path(place).is_dir() else None


def place_of(container: str) -> str | None:
    """The cgroup of a container, by its whole id, as one of its processes has it now; None where none runs."""
    if len(container) < SHORTEST_ID:
        return None
    for pid in (name for name in names_in("/proc") or () if name.isdecimal()):
        for row in (read_file(f"/proc/{pid}/cgroup") or b"").decode(errors="surrogateescape").splitlines():
            parts = row.split(":", 2)[-1].split("/")
            depth = next((at for at, part in enumerate(parts, 1) if container in part), None)
            if depth is not None:
                return "/".join(parts[:depth])
    return None


def pids(directory: str) -> list[int]:
    """Of a cgroup and all below it."""
    found = []
    for place, _, _ in os.walk(directory):
        found += [int(word) for word in (read_file(f"{place}/cgroup.procs") or b"").split() if word.isdigit()]
    return found


def holds_us(frozen: Frozen) -> bool:
    """Whether we, or whoever carries our session, would be frozen too."""
    inside, pid = set(pids(frozen.directory)), os.getpid()
    while pid > 1:
        if pid in inside:
            return True
        stat = read_stat(pid)
        pid = 0 if stat is None else stat.ppid
    return 1 in inside


def freeze(frozen: Frozen, tell: Callable[[Frozen], None] = lambda _: None, limit_s: float = FREEZE_S) -> Frozen:
    """What is frozen now; `tell` hears of it before it happens. TimeoutError where the kernel did not get there in time
    (a task in D state)."""
    tell(frozen)
    if frozen.kind == "signals":
        return _stop_all(frozen, tell)
    file, word = _WRITES[frozen.kind]
    Path(f"{frozen.directory}/{file}").write_text(word)
    end = time.monotonic() + limit_s
    while not is_frozen(frozen):
        if time.monotonic() > end:
            thaw(frozen)
            raise TimeoutError(f"{frozen.directory} was not frozen within {limit_s:g} s, and was let go again")
        time.sleep(0.001)
    return frozen


def _stop_all(frozen: Frozen, tell: Callable[[Frozen], None]) -> Frozen:
    for _ in range(ROUNDS):
        known = dict(frozen.processes)
        found = (read_stat(pid) for pid in pids(frozen.directory) if pid not in known)
        new = [(stat.pid, stat.start_time_ticks) for stat in found if stat is not None and stat.state not in "TtZX"]
        if not new:
            break
        frozen = Frozen("signals", frozen.directory, (*frozen.processes, *new))
        tell(frozen)
        for pid, start in new:
            signals.send(pid, start, signal.SIGSTOP)
        time.sleep(0.02)
    return frozen


def is_frozen(frozen: Frozen) -> bool:
    if frozen.kind == "freeze":
        return b"frozen 1" in (read_file(f"{frozen.directory}/cgroup.events") or b"")
    if frozen.kind == "cpu.max":
        return (read_file(f"{frozen.directory}/cpu.max") or b"").decode().split() == _HARDLY.split()
    if frozen.kind == "freezer":
        return (read_file(f"{frozen.directory}/freezer.state") or b"").strip() == b"FROZEN"
    states = [
        stat.state for pid, start in frozen.processes if (stat := read_stat(pid)) and stat.start_time_ticks == start
    ]
    return bool(states) and all(state in "Tt" for state in states)


def thaw(frozen: Frozen) -> None:
    """Harmless when it is not frozen, or gone."""
    if frozen.kind != "signals":
        file = _WRITES[frozen.kind][0]
        word = frozen.before if frozen.kind == "cpu.max" else _THAWS[frozen.kind]
        try:
            Path(f"{frozen.directory}/{file}").write_text(word)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):  # removed, or removed while it was open
                raise
        return
    for pid, start in frozen.processes:
        signals.send(pid, start, signal.SIGCONT)
