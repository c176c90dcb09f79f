"""Tasks that wait: when to look, what to write down, whom to tell.

Looking is the helper's (wait_helper.py); nothing here reads what can hang. It looks at once when something calls for it
(wait_suspicion.py), again after 5 s, because only two looks tell who does not move, and after another 5, then every
10 s while somebody is stuck, and more rarely where nobody is (a thousandth of a core). File servers and FUSE daemons
are looked at every 30 s where there are any, without the tasks; where there are none the helper ends after a minute,
and is asked again after five, or when something is mounted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from zombiescope.recorder.mount_watch import MountWatch
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.sources.disks import Disks
from zombiescope.recorder.tick import Tick
from zombiescope.recorder.wait_hangs import Hangs
from zombiescope.recorder.wait_process import WaitProcess
from zombiescope.recorder.wait_suspicion import WaitSuspicion
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event

SOURCE = "waiting tasks"
FUSECTL = "FUSE requests"
SECOND_LOOK_US = 5_000_000
YOUNG_LOOKS = 4
"""As long as it is not sure whether somebody hangs."""
LOOKS_US = 10_000_000
OFTEN_US, RARELY_US = 30_000_000, 300_000_000
TASK_US = 30_000
"""A task takes 30 us to look at: a look in which nobody is stuck may cost a thousandth of a core."""
MOUNTS_US = 30_000_000
NO_MOUNTS_US = 300_000_000
CALM_US = 30_000_000
"""Without a reason for this long, the next one is new."""
IDLE_US = 60_000_000
FIRST_US = 10_000_000
SAME_US = 3_000_000

Answer = dict[str, Any]
_NAMED = ("pid", "tid", "comm", "cgroup", "state", "wchan", "frames", "kind", "resource")


class Waits:
    def __init__(
        self, batch: Batch, sources: Sources, disks: Disks, gauge: Callable[[int, str, str, str | None, int], None],
        root: str = "/",
    ) -> None:  # fmt: skip
        self._batch = batch
        self._sources = sources
        self._disks = disks
        self._gauge = gauge
        self._suspicion = WaitSuspicion(root)
        self._is_live = root == "/"
        self._mount_watch = MountWatch(root)
        self.process = WaitProcess()
        self.hangs = Hangs()
        self.tell: Callable[[Event], None] = lambda _: None
        self.suspect: Callable[[int, str], None] = lambda _at, _what: None
        self._look_us: int | None = None
        """When the tasks are looked at next; None while nothing calls for it."""
        self._gap_us = LOOKS_US
        self._looks = 0
        self._reason_us = self._used_us = 0
        self._mounts_us: int | None = None
        self._remote_is_silent = False
        self._mounts: dict[str, tuple[Any, ...]] = {}
        self._asked_for_tasks = False
        self._since_us: dict[tuple[int, int], int] = {}

    @property
    def pids(self) -> list[int]:
        """Of the tasks that the last look found stuck."""
        return [pid for pid, _ in self._since_us]

    def restart(self) -> None:
        """A new segment says its mounts again."""
        self._mounts.clear()

    def tick(self, tick: Tick) -> None:
        now_us = tick.wall_us
        answer = self.process.listen(now_us)
        if answer is not None:
            self._sources.has(SOURCE, now_us)
            self._understand(now_us, answer)
        self._follow_reasons(tick)
        self._say(now_us)
        if self._is_live:
            self._ask(now_us)

    # --- when --------------------------------------------------------------------------------------------------------

    def _follow_reasons(self, tick: Tick) -> None:
        now_us = tick.wall_us
        reasons = self._suspicion.reasons(tick, self._disks.stalled_s(now_us))
        if reasons or self._remote_is_silent or self.hangs.any:
            if self._look_us is None:
                self._look_us, self._looks, self._gap_us = now_us, 0, LOOKS_US
            self._reason_us = now_us
        elif self._look_us is not None and now_us - self._reason_us > CALM_US:
            self._look_us = None

    def _ask(self, now_us: int) -> None:
        tasks_due = self._look_us is not None and now_us >= self._look_us
        if self._mounts_us is None:
            self._mounts_us = now_us + FIRST_US
        elif self._mount_watch.changed():
            self._mounts_us = min(self._mounts_us, max(now_us, self._used_us + MOUNTS_US))
        if not tasks_due and now_us < self._mounts_us:
            if now_us - self._used_us > IDLE_US and not self._mounts:
                self.process.let_go()
            return
        if self.process.ask(now_us, {"tasks": tasks_due}):
            self._used_us, self._asked_for_tasks = now_us, tasks_due
            self._mounts_us = now_us + MOUNTS_US

    def _next_look(self, now_us: int, answer: Answer) -> None:
        """Where nobody is stuck, more and more rarely: on many healthy nodes somebody always waits for a disk."""
        self._looks += 1
        if self._looks < (YOUNG_LOOKS if answer.get("stuck") else 2):
            self._look_us = now_us + SECOND_LOOK_US
            return
        rarely_us = min(max(OFTEN_US, int(answer.get("looked_at") or 0) * TASK_US), RARELY_US)
        self._gap_us = LOOKS_US if answer.get("stuck") else min(2 * self._gap_us, rarely_us)
        self._look_us = now_us + self._gap_us

    # --- what --------------------------------------------------------------------------------------------------------

    def _understand(self, now_us: int, answer: Answer) -> None:
        self._batch.extend(schema.WAITING, self._rows(now_us, answer.get("tasks") or ()))
        if "tasks" in answer:
            self.hangs.look(now_us, answer["tasks"])
            for name in ("blocked", "shims"):
                if answer.get(name) is not None:
                    self._gauge(now_us, "tasks", name, None, int(answer[name]))
        if self._asked_for_tasks and self._look_us is not None:
            self._next_look(now_us, answer)
        self._note_mounts(now_us, answer)

    def _rows(self, now_us: int, tasks: Iterable[Answer]) -> list[tuple[Any, ...]]:
        """A task that goes on waiting began when it was first said to have: an incident is known by that second."""
        before, self._since_us = self._since_us, {}
        rows = []
        for each in tasks:
            who, since_us = (each["pid"], each["tid"]), now_us - int(float(each["age_s"]) * 1e6)
            known_us = before.get(who, since_us)
            since_us = self._since_us[who] = known_us if abs(known_us - since_us) < SAME_US else since_us
            rows.append(_row(now_us, since_us, each))
        return rows

    def _note_mounts(self, now_us: int, answer: Answer) -> None:
        served = [*(answer.get("mounts") or ()), *(answer.get("below") or ())]
        found = {str(each["point"]): _mount(each) for each in served}
        for point, row in found.items():
            if self._mounts.get(point) != row:
                self._batch.add(schema.MOUNTS, (now_us, *row))
        self._mounts = found
        self._remote_is_silent = bool(answer.get("silent"))
        if answer.get("pending") and self._mounts_us is not None:  # only a second look tells whether it answers
            self._mounts_us = min(self._mounts_us, now_us + SECOND_LOOK_US)
        if not answer.get("remote"):
            self._mounts_us = now_us + NO_MOUNTS_US
        if answer.get("unseen"):
            grant = "sudo mount -t fusectl fusectl /sys/fs/fuse/connections"
            why = f"{answer['unseen']} FUSE mounts, and how many of their requests wait cannot be read"
            self._sources.lacks(FUSECTL, why, grant, now_us)
        else:
            self._sources.has(FUSECTL, now_us)

    def _say(self, now_us: int) -> None:
        for event in self.hangs.events(now_us):
            self.tell(event)
        for what in self.hangs.now:
            self.suspect(now_us, what)

    def close(self) -> None:
        self.process.stop()
        self._suspicion.close()
        self._mount_watch.close()


def _row(now_us: int, since_us: int, each: Answer) -> tuple[Any, ...]:
    moves = each.get("moves")
    known = (each.get(name) for name in _NAMED)
    return (now_us, since_us, *known, None if moves is None else int(moves), each.get("alike"),
            each.get("kernel_thread"), each.get("daemon"), each.get("bytes_per_s"))  # fmt: skip


def _mount(each: Answer) -> tuple[Any, ...]:
    return tuple(each.get(name) for name in ("kind", "source", "point", "device", "waiting", "answered", "resent"))
