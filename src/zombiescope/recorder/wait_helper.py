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
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from zombiescope.base import helper as _helper
from zombiescope.base.confinement import confine
from zombiescope.kernel import blocked_task, process
from zombiescope.kernel.blocked_task import Frame
from zombiescope.kernel.mountinfo import Mount
from zombiescope.recorder import reader_pipe
from zombiescope.recorder.fuse_daemon import FuseDaemons
from zombiescope.recorder.wait_kinds import kind_of
from zombiescope.recorder.wait_resources import Resource, Resources
from zombiescope.recorder.wait_scan import Look, Suspect, TaskScan
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


if __name__ == "__main__":
    _helper.begin()
    sys.exit(main())
