"""The helper that looks at tasks which wait: a process of its own, because whatever it reads may hang with them.

    python -m zombiescope.recorder.wait_helper

    it reads   {"tasks": true}      look, with the tasks or at the mounts alone
    it writes  {"tasks": [...], "groups": ..., "mounts": [...], ...}      what it found, one line
               {"beat": true}       every two seconds while it has nothing to do, and between the steps of a look

It keeps what it saw at the look before, because only two looks tell who does not move. It ends when its input does.
It opens nothing on a disk once it runs, and nothing below a mount point ever; it has no powers but those for looking.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from zombiescope.base import helper as _helper
from zombiescope.base.confinement import confine
from zombiescope.kernel import blocked_task, process
from zombiescope.kernel.blocked_task import Frame, TaskState
from zombiescope.kernel.mountinfo import Mount
from zombiescope.kernel.procfile import at, names_in
from zombiescope.recorder import reader_pipe
from zombiescope.recorder.fuse_daemon import FuseDaemons
from zombiescope.recorder.wait_kinds import FUSE_WAITS, kind_of
from zombiescope.recorder.wait_resources import Resource, Resources
from zombiescope.store.hangs import NEVER, REMOTE

SERVED = REMOTE | {"fuse"}
MOST_ROWS = 64
MOST_STACKS = 256
MOST_MOUNTS = 64
_CAP_DAC_READ_SEARCH, _CAP_SYS_PTRACE, _CAP_SYS_ADMIN = 2, 19, 21
Row = dict[str, Any]
Group = tuple[str | None, str | None]


class WaitHelper:
    def __init__(self, root: str = "/", beat: Callable[[], None] = lambda: None) -> None:
        """`beat`: called between steps, each of which may hang."""
        self._root = root
        self._beat = beat
        self._scan = TaskScan(root)
        self._resources = Resources(root)
        self._daemons = FuseDaemons(root)

    def look(self, now_s: float, *, tasks: bool) -> Row:
        resources = self._resources
        resources.refresh()
        is_silent = resources.fuse_is_silent
        self._beat()
        found = self._scan.look(now_s, fuse=is_silent) if tasks else None
        self._beat()
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            **({} if found is None else self._waiting(found)),
            "mounts": [self._mount(mount) for mount in resources.remote[:MOST_MOUNTS]],
            "below": [_loop(disk, mount) for disk, mount in resources.below.items()],
            "remote": len(resources.remote) + resources.connections,
            "pending": resources.fuse_is_asked,
            "silent": is_silent or resources.nfs_is_silent,
            "unseen": sum(mount.family == "fuse" and resources.waiting(mount) is None for mount in resources.remote),
            "total_cpu_us": int((used.ru_utime + used.ru_stime) * 1e6),
            "rss_bytes": used.ru_maxrss * 1024,
        }

    # --- tasks -------------------------------------------------------------------------------------------------------

    def _waiting(self, look: Look) -> Row:
        suspects = [*look.stuck, *look.throttled]
        found = [self._row(suspect, is_throttled=suspect in look.throttled) for suspect in suspects[:MOST_STACKS]]
        rows = [row for row in found if row["kind"] not in NEVER]
        _name_the_only_one(rows)
        groups = Counter((row["kind"], row["resource"]) for row in rows)
        for row in rows:
            row["alike"] = groups[row["kind"], row["resource"]]
        return {
            "tasks": _some_of_each(rows),
            "stuck": len(suspects),
            "more": max(0, len(suspects) - MOST_STACKS),
            "blocked": look.blocked,
            "looked_at": look.tasks,
            "shims": look.shims if look.complete else None,
            "complete": look.complete,
        }

    def _row(self, suspect: Suspect, *, is_throttled: bool) -> Row:
        self._beat()
        frames = blocked_task.stack(self._scan.place(suspect.pid, suspect.tid))
        kind = "writeback" if is_throttled else kind_of(frames, suspect.wchan)
        found = self._resources.of(suspect.pid, suspect.tid, kind)
        return {
            "age_s": round(suspect.age_s, 3),
            "pid": suspect.pid,
            "tid": suspect.tid,
            "comm": suspect.task.comm,
            "kernel_thread": int(suspect.task.is_kernel_thread),
            "cgroup": self._cgroup(suspect),
            "state": suspect.task.state,
            "wchan": suspect.wchan,
            "frames": _text(frames),
            "kind": kind if is_throttled else found.kind,
            "resource": found.name,
            "moves": True if is_throttled and found.moves is None else found.moves,
            "daemon": self._daemon(found),
            "bytes_per_s": None if suspect.bytes_per_s is None else round(suspect.bytes_per_s),
        }

    def _cgroup(self, suspect: Suspect) -> str | None:
        if suspect.task.is_kernel_thread:
            return None
        known = process.read(suspect.pid, self._root, cmdline=False)
        if known is None:
            return None
        paths = [known.systemd_cgroup, *known.cgroups.values()]
        return max((path for path in paths if path), key=len, default=None)

    def _daemon(self, found: Resource) -> str | None:
        if found.kind != "fuse" or found.mount is None:
            return None
        return self._daemons.of(found.mount)

    # --- mounts ------------------------------------------------------------------------------------------------------

    def _mount(self, mount: Mount) -> Row:
        return {
            "kind": mount.type,
            "source": mount.source,
            "point": mount.point,
            "device": mount.device,
            "waiting": self._resources.waiting(mount),
            "answered": self._resources.answers(mount),
            "resent": self._resources.resent(mount),
        }


class Answering:
    """Each question is answered once."""

    def __init__(self) -> None:
        self._helper = WaitHelper(beat=self._beat)
        self._asked: deque[dict[str, Any]] = deque(maxlen=1)
        self._beat_s = 0.0

    def follow(self, said: Any) -> None:
        if isinstance(said, dict):
            self._asked.append(said)

    def turn(self, now_s: float) -> dict[str, Any] | None:
        if not self._asked:
            return None
        return self._helper.look(now_s, tasks=bool(self._asked.popleft().get("tasks")))

    def wait_s(self, _: float) -> float:
        return _helper.BEAT_S

    def _beat(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._beat_s:
            self._beat_s = now_s + _helper.BEAT_S
            reader_pipe.say(reader_pipe.BEAT)


def _name_the_only_one(rows: list[Row]) -> None:
    """Who waits for a thing that cannot be told (a thread of the kernel that works for a loop device) waits for the one
    that all others of its kind wait for, if that is one."""
    for kind in {row["kind"] for row in rows if row["resource"] is None} & SERVED:
        named = {row["resource"]: row for row in rows if row["kind"] == kind and row["resource"] is not None}
        if len(named) == 1:
            only = next(iter(named.values()))
            for row in rows:
                if row["kind"] == kind and row["resource"] is None:
                    row.update({name: only[name] for name in ("resource", "moves", "daemon")})


def _loop(disk: str, mount: Mount) -> Row:
    """A loop device whose file is on a mount that may hang."""
    return {"kind": "loop", "source": mount.point if mount.family == "fuse" else mount.source, "point": disk,
            "device": mount.type}  # fmt: skip


def _text(frames: tuple[Frame, ...]) -> str | None:
    """Outermost first, as stacks are everywhere here."""
    return ";".join(map(str, reversed(frames))) or None


def _some_of_each(rows: list[Row]) -> list[Row]:
    """Thousands may wait for one server: of each thing the oldest first, and some of every one."""
    by_group: dict[Group, list[Row]] = {}
    for row in sorted(rows, key=lambda row: -row["age_s"]):
        by_group.setdefault((row["kind"], row["resource"]), []).append(row)
    share = max(1, MOST_ROWS // max(1, len(by_group)))
    return [row for same in by_group.values() for row in same[:share]][:MOST_ROWS]


def main() -> int:
    os.nice(5)
    confine(keep=(_CAP_DAC_READ_SEARCH, _CAP_SYS_PTRACE, _CAP_SYS_ADMIN))
    with suppress(BrokenPipeError, KeyboardInterrupt):
        reader_pipe.run(Answering())
    return 0


# --- scan of tasks ----------------------------------------------------------------------------------------------------
# The tasks of this machine that wait and do not move: a bounded walk over /proc, in the helper only.
#
# A task is a suspect when it is in state D, and stuck when a second look finds it in the same wait: it was not given a
# CPU in between (where the kernel does not count that: same state and same function). Waits for FUSE are in state S, so
# where a FUSE file system is suspected the function of every sleeping task is read too.
#
# Bounds: MOST_TASKS tasks and BUDGET_S of time a look; the next look goes on where this one stopped.

MOST_TASKS = 30_000
BUDGET_S = 1.0
MOST_SUSPECTS = 512
APART_S = 4.0
"""Two looks that are closer say nothing about whether a task moves."""
SHIM = "containerd-shim"
THROTTLED_IN = "balance_dirty_pages"


@dataclass(slots=True)
class Suspect:
    pid: int
    tid: int
    task: TaskState
    runs: int | None
    wchan: str | None
    since_s: float
    """When it was first seen in this wait."""
    seen_s: float
    written: int | None = None
    bytes_per_s: float | None = None
    """What it was allowed to write since the last look, of one that is stopped from writing."""

    @property
    def age_s(self) -> float:
        return self.seen_s - self.since_s


@dataclass(slots=True)
class Look:
    stuck: list[Suspect] = field(default_factory=list)
    """Those that have not moved since an earlier look."""
    throttled: list[Suspect] = field(default_factory=list)
    """Those that waited at both looks, in balance_dirty_pages at one of them, and ran in between as it lets them."""
    blocked: int = 0
    tasks: int = 0
    shims: int = 0
    complete: bool = True


class TaskScan:
    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._suspects: dict[tuple[int, int], Suspect] = {}
        self._resume = 0

    def look(self, now_s: float, *, fuse: bool = False) -> Look:
        look, before = Look(), self._suspects
        self._suspects = {}
        for pid, tid, task in self._tasks(look):
            wchan = self._sleeps_in(pid, tid) if fuse and task.state == "S" else None
            if task.state == "D" or wchan in FUSE_WAITS:
                look.blocked += 1
                self._note(look, before.get((tid, task.start_ticks)), self._suspect(pid, tid, task, wchan, now_s))
        if not look.complete:  # who was not reached may still be waiting
            for key in list(before)[: MOST_SUSPECTS - len(self._suspects)]:
                self._suspects.setdefault(key, before[key])
        return look

    def _note(self, look: Look, before: Suspect | None, now: Suspect) -> None:
        if len(self._suspects) >= MOST_SUSPECTS:
            return
        self._suspects[now.tid, now.task.start_ticks] = now
        if before is None:
            return
        throttled = THROTTLED_IN in (now.wchan, before.wchan)  # it wakes, and may be met a step before or after
        if before.runs == now.runs and (now.runs is not None or before.wchan == now.wchan):
            now.since_s = before.since_s
            if now.age_s >= APART_S:
                look.stuck.append(now)
        elif throttled:
            now.since_s = before.since_s
            if before.written is not None and now.written is not None and now.seen_s > before.seen_s:
                now.bytes_per_s = (now.written - before.written) / (now.seen_s - before.seen_s)
            if now.age_s >= APART_S:
                look.throttled.append(now)

    def _suspect(self, pid: int, tid: int, task: TaskState, wchan: str | None, now_s: float) -> Suspect:
        place = self.place(pid, tid)
        known = wchan if wchan is not None else blocked_task.wchan(place)
        return Suspect(pid, tid, task, blocked_task.runs(place), known, now_s, now_s, blocked_task.written(place))

    def place(self, pid: int, tid: int) -> str:
        return at(self._root, f"proc/{pid}/task/{tid}")

    def _sleeps_in(self, pid: int, tid: int) -> str | None:
        return blocked_task.wchan(self.place(pid, tid))

    def _tasks(self, look: Look) -> Iterator[tuple[int, int, TaskState]]:
        """From where the last look stopped, once around."""
        pids = sorted(int(name) for name in names_in(at(self._root, "proc")) or () if name.isdigit())
        first = next((place for place, pid in enumerate(pids) if pid >= self._resume), 0)
        ends_s = time.monotonic() + BUDGET_S
        self._resume = 0
        for pid in (*pids[first:], *pids[:first]):
            if look.tasks >= MOST_TASKS or time.monotonic() > ends_s:
                self._resume, look.complete = pid, False
                return
            for name in names_in(at(self._root, f"proc/{pid}/task")) or ():
                task = blocked_task.read_state(self.place(pid, int(name))) if name.isdigit() else None
                if task is not None:
                    look.tasks += 1
                    look.shims += task.comm.startswith(SHIM) and int(name) == pid
                    yield pid, int(name), task


if __name__ == "__main__":
    _helper.begin()
    sys.exit(main())
