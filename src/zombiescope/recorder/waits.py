"""Tasks that wait: when to look, what to write down, whom to tell.

Looking is the helper's (wait_helper.py); nothing here reads what can hang. It looks at once when something calls for it
(below), again after 5 s, because only two looks tell who does not move, and after another 5, then every
10 s while somebody is stuck, and more rarely where nobody is (a thousandth of a core). File servers and FUSE daemons
are looked at every 30 s where there are any, without the tasks; where there are none the helper ends after a minute,
and is asked again after five, or when something is mounted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from zombiescope.kernel import loadavg
from zombiescope.kernel.procfile import ProcFile, at
from zombiescope.recorder.mount_watch import MountWatch
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.sources.disks import Disks
from zombiescope.recorder.tick import Tick
from zombiescope.recorder.wait_process import WaitProcess
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event
from zombiescope.store.hangs import hangs, thing

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


# --- when a look is worth it ------------------------------------------------------------------------------------------
# Whether somebody may be waiting who does not come back: from numbers that are there anyway, at every tick.
#
# blocked   procs_blocked: tasks that wait for a disk or a page load      the load average rises above what runs: it
# alone counts every task in state D, also those that wait for NFS, a           lock or a driver, whom neither
# procs_blocked nor PSI nor iowait knows disk      a disk has requests and completes none remote    a file server or
# FUSE daemon stood still at the helper's last look

BLOCKED_TICKS = 3
STALLED_S = 3.0
LOAD_S = 15.0
_KEPT: float = 0.92 ** (LOAD_S / 5)  # exp(-5 s / 60 s) of the average is kept every five seconds
LEAST_WAITING = 0.7
LEAST_OF_RUNNING = 0.25
"""What runs changes all the time, and the more the more it is."""


class WaitSuspicion:
    def __init__(self, root: str = "/") -> None:
        self._load = ProcFile(at(root, "proc/loadavg"))
        self._blocked = 0
        self._past: deque[tuple[int, float, int]] = deque(maxlen=64)

    def reasons(self, tick: Tick, stalled_s: float) -> set[str]:
        blocked = tick.stat.procs_blocked if tick.stat is not None else None
        self._blocked = self._blocked + 1 if blocked else 0
        found = set()
        if self._blocked >= BLOCKED_TICKS:
            found.add("blocked")
        if stalled_s >= STALLED_S:
            found.add("disk")
        if self._waiting(tick):
            found.add("load")
        return found

    def _waiting(self, tick: Tick) -> bool:
        """Tasks that the load average counts and that do not run: what was added to it in the last 15 s."""
        data = self._load.read()
        load = loadavg.parse(data) if data is not None else None
        running = tick.stat.procs_running if tick.stat is not None else None
        if load is None or running is None:
            return False
        self._past.append((tick.wall_us, load.load1, max(0, running - 1)))  # we run
        while self._past and tick.wall_us - self._past[0][0] > LOAD_S * 1e6:
            before = self._past.popleft()
            if tick.wall_us - before[0] > 2 * LOAD_S * 1e6:
                continue
            active = (load.load1 - before[1] * _KEPT) / (1 - _KEPT)
            mean = sum(one[2] for one in self._past) / max(1, len(self._past))
            return active - mean >= max(LEAST_WAITING, LEAST_OF_RUNNING * mean)
        return False

    def close(self) -> None:
        self._load.close()


# --- hangs ------------------------------------------------------------------------------------------------------------
# What hangs now, as the recorder tells it: an event when tasks have waited too long, and one when they go on.
#
# The rule is that of the diagnosis (store/hangs.py); this only remembers what was told.

KIND = "tasks_wait"
MOST = 64
OVER_US = 25_000_000
"""Not found again for this long: two looks and more."""


@dataclass(slots=True)
class Hang:
    what: str
    since_us: int
    last_us: int
    tasks: int
    comms: tuple[str, ...]
    fields: dict[str, Any]
    told: bool = False

    def text(self) -> str:
        who = f"{self.tasks} tasks wait" if self.tasks != 1 else f"{self.comms[0]} waits"
        named = f" ({', '.join(self.comms)})" if self.tasks != 1 else ""
        return f"{who} for {self.what} since {(self.last_us - self.since_us) / 1e6:.0f} s{named}"


class Hangs:
    def __init__(self) -> None:
        self._known: dict[str, Hang] = {}

    @property
    def any(self) -> bool:
        return bool(self._known)

    @property
    def now(self) -> list[str]:
        return list(self._known)

    def look(self, now_us: int, tasks: list[dict[str, Any]]) -> None:
        """What the helper found at one look."""
        groups: dict[str, list[dict[str, Any]]] = {}
        for each in tasks:
            moves, is_kernel = each.get("moves"), bool(each.get("kernel_thread"))
            if hangs(each.get("kind"), float(each["age_s"]), moves, kernel_thread=is_kernel):
                groups.setdefault(thing(each.get("kind"), each.get("resource")), []).append(each)
        for what, alike in list(groups.items())[:MOST]:
            self._note(now_us, what, alike)

    def _note(self, now_us: int, what: str, alike: list[dict[str, Any]]) -> None:
        first = alike[0]
        since_us = now_us - int(max(float(each["age_s"]) for each in alike) * 1e6)
        comms = tuple(sorted({str(each["comm"]) for each in alike}))[:4]
        fields = {"resource": first.get("resource"), "waits_for": first.get("kind"), "wchan": first.get("wchan")}
        count = max(len(alike), int(first.get("alike") or 0))
        known = self._known.get(what)
        told, since_us = (known.told, min(known.since_us, since_us)) if known else (False, since_us)
        self._known[what] = Hang(what, since_us, now_us, count, comms, fields, told)

    def events(self, now_us: int) -> Iterator[Event]:
        for what, hang in list(self._known.items()):
            if not hang.told:
                hang.told = True
                fields = {**hang.fields, "tasks": hang.tasks, "since_us": hang.since_us}
                yield Event(now_us, KIND, "recorder", "warning", hang.text(), fields)
            elif now_us - hang.last_us > OVER_US:
                del self._known[what]
                lasted_s = (hang.last_us - hang.since_us) / 1e6
                text = f"nobody waits for {what} any more, after {lasted_s:.0f} s or some more"
                yield Event(now_us, KIND, "recorder", "info", text, hang.fields)
