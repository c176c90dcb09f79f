"""What a suspect that no pattern explains was seen doing: its system calls, on what, how often, from which line.

The table `closer_looks` (recorder/closer_looks.py) has a row of each look and one of each call. A look agrees with the
samples of the incident where the system call in which the hog was sampled is among those that the look followed: then
it says what the hog did, and the fallback is as sure as what was found (CLOSER_LOOK_OBJECT_WEIGHT,
CLOSER_LOOK_CALL_WEIGHT). A look at something else, or one that the process did not live to see the end of, is told and
confirms nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from zombiescope.base.text import printable
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Incident
from zombiescope.diagnosis.kernel_entry import shown_as, system_call
from zombiescope.diagnosis.pattern import FALLBACK, Measurement
from zombiescope.diagnosis.thresholds import (
    CLOSER_LOOK_CALL_WEIGHT,
    CLOSER_LOOK_FAILS_PER_S,
    CLOSER_LOOK_LATE_US,
    CLOSER_LOOK_LONG_CALL_US,
    CLOSER_LOOK_OBJECT_WEIGHT,
    CLOSER_LOOK_RECENT_US,
)
from zombiescope.kernel.system_calls import LENGTH, READS, WAITS, WRITES, YIELDS, size_text
from zombiescope.query.selection import Filters, Selection
from zombiescope.store import columns
from zombiescope.store.reader import Recording
from zombiescope.store.stacks import KERNEL_KINDS

SOURCE = "closer_looks"
_NO_OBJECT = YIELDS | WAITS | frozenset({"getpid", "getppid", "gettid", "sched_getaffinity", "brk", "uname", "times"})
"""Calls that work on nothing one could name."""
MOST_CALLERS = 3
MOST_STACKS = 50
_LISTS = frozenset({"getdents", "getdents64"})
_OPENS = frozenset({"open", "openat", "openat2", "creat"})
_SHOWN_US, _SHOWN_BYTES_PER_S = 100, 1 << 20


@dataclass(frozen=True, slots=True)
class Followed:
    """One system call and what it worked on."""

    call: str
    object: str | None
    threads: int
    calls: int
    per_s: float
    took_us: int | None
    total_us: int
    bytes_per_s: int
    failed: int
    error: str | None


@dataclass(frozen=True, slots=True)
class CloserLook:
    pid: int
    start_ticks: int | None
    comm: str
    begin_us: int
    time_us: int
    why: str | None
    """What is missing of it."""
    threads: int | None
    state: str | None
    wchan: str | None
    file: str | None
    line: int | None
    function: str | None
    per_s: float | None
    calls: tuple[Followed, ...]

    @property
    def place(self) -> str | None:
        """ "agent.py:132, poll" """
        if self.file is None:
            return None
        return f"{self.file.rpartition('/')[2]}:{self.line}" + (f", {self.function}" if self.function else "")

    def main(self, asked: str | None) -> Followed | None:
        """The call that explains where the hog was sampled: the one of that name that took most time; without one, what
        took most time of all that is no waiting."""
        same = [one for one in self.calls if shown_as(one.call) == asked]
        working = [one for one in self.calls if one.call not in WAITS]
        return max(same or working or self.calls, key=lambda one: (one.total_us, one.per_s), default=None)


def looks(recording: Recording, start_us: int, end_us: int) -> list[CloserLook]:
    """The closer looks of a window, in the order of time."""
    found: dict[tuple[int, int], tuple[dict[str, object], list[Followed]]] = {}
    for row in columns.records(recording.table(SOURCE, start_us, end_us)):
        key = row["pid"], row["begin"]
        if row["call"] is None:
            found.setdefault(key, (row, []))
        elif key in found:
            found[key][1].append(_followed(row))
    return sorted((_look(row, calls) for row, calls in found.values()), key=lambda one: one.begin_us)


def _followed(row: dict[str, object]) -> Followed:
    number = {name: int(str(row[name] or 0)) for name in ("threads", "calls", "total_us", "bytes_per_s", "failed")}
    took = row["took_us"]
    return Followed(
        str(row["call"]), _said(row["object"]), number["threads"], number["calls"],
        int(str(row["thousandths_per_s"] or 0)) / 1000, None if took is None else int(str(took)), number["total_us"],
        number["bytes_per_s"], number["failed"], _said(row["error"]),
    )  # fmt: skip


def _look(row: dict[str, object], calls: list[Followed]) -> CloserLook:
    def number(name: str) -> int | None:
        return None if row[name] is None else int(str(row[name]))

    rate = number("thousandths_per_s")
    return CloserLook(
        number("pid") or 0, number("start_ticks"), _said(row["comm"]) or "?", number("begin") or 0, number("time") or 0,
        _said(row["why"]), number("threads"), _said(row["state"]), _said(row["wchan"]), _said(row["file"]),
        number("line"), _said(row["function"]), None if rate is None else rate / 1000, tuple(calls),
    )  # fmt: skip


def _said(value: object) -> str | None:
    return None if value is None else printable(str(value))


# --- in an incident --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Account:
    """What a look says of the hog of an incident."""

    look: CloserLook
    call: Followed | None
    agrees: bool
    """The hog was sampled in that call."""
    callers: tuple[str, ...] = ()
    """Functions of the program, outermost first, that led to it."""

    @property
    def yields(self) -> bool:
        """It gives its core to whoever wants it."""
        return self.call is not None and self.call.call in YIELDS

    @property
    def does_harm(self) -> bool:
        """Each call keeps a core for as long as others notice; or it fails, and is tried again and again."""
        call = self.call
        if call is None or not self.agrees or call.call in WAITS:
            return False
        fails = call.failed * 10 >= call.calls * 9 and call.per_s >= CLOSER_LOOK_FAILS_PER_S
        return (call.took_us or 0) >= CLOSER_LOOK_LONG_CALL_US or fails

    @property
    def sentence(self) -> str:
        return sentence(self.look, self.call, self.callers)

    def measurement(self) -> Measurement:
        fact, call = f"looked at closer: {self.sentence}", self.call
        if self.look.why:
            fact += f" ({self.look.why})"
        if call is None or not self.agrees:
            rate = None if call is None else round(call.per_s, 3)
            return Measurement(fact, rate, "calls/s", SOURCE, "nothing", self.look.begin_us, "closer look")
        known = call.object is not None or call.call in _NO_OBJECT
        weight = CLOSER_LOOK_OBJECT_WEIGHT if known else CLOSER_LOOK_CALL_WEIGHT
        rate = round(call.per_s, 3)
        return Measurement(fact, rate, "calls/s", SOURCE, "confirms", self.look.begin_us, "closer look", weight=weight)


def account(case: Case) -> Account | None:
    """The look at the hog of this incident that says most; None where nobody looked."""
    task = case.hog_task
    if task is None:
        return None
    pids = case.hog_process_ids
    found = [
        one for one in looks(case.facts.recording, case.from_us, case.to_us + CLOSER_LOOK_LATE_US) if one.pid in pids
    ]
    if not found:
        return None
    asked = system_call(case.frames)
    accounts = [_accounted(one, asked) for one in found]
    best = max(accounts, key=lambda one: (one.agrees, one.call is not None, one.look.begin_us))
    callers = () if best.look.place or best.call is None else tuple(_callers(case, best.call.call))
    return Account(best.look, best.call, best.agrees, callers)


def _accounted(look: CloserLook, asked: str | None) -> Account:
    call = look.main(asked)
    return Account(look, call, call is not None and shown_as(call.call) == asked)


def _callers(case: Case, call: str) -> Iterator[str]:
    """The program's own functions above the call, as the samples of the hog have them: without the C library's."""
    pids = frozenset(case.hog_process_ids)
    selection = Selection(case.facts.recording, case.from_us, case.to_us, Filters(pids=pids))
    counts = selection.counts()
    for stack in counts.argsort()[::-1][:MOST_STACKS].tolist():
        if not counts[stack]:
            return
        functions = selection.stacks.of(stack)
        names = tuple(one.name for one in functions if one.kind in KERNEL_KINDS)
        if shown_as(call) != system_call(names):
            continue
        own = [one.name for one in functions if one.kind == "user" and _is_own(one.name, one.module)]
        if own:
            yield from own[-MOST_CALLERS:]
            return


def _is_own(name: str, module: str | None) -> bool:
    library = (module or "").rpartition("/")[2]
    is_library = library.startswith(("libc.", "libc-", "ld-"))
    return not is_library and not name.startswith(("[", "0x", "_start", "__libc_start"))


def unexplained(
    incidents: tuple[Incident, ...], recording: Recording, start_us: int, end_us: int
) -> list[tuple[int, int]]:
    """(pid, when it started) of the hogs that no pattern explains, of incidents that are open or just over: whom to
    look at closer. On a loaded node the first pass comes late, and whoever did it once may do it again."""
    pids = [
        one.causes[0].hog.pid
        for one in incidents
        if one.to_us >= end_us - CLOSER_LOOK_RECENT_US
        and one.causes
        and one.causes[0].pattern == FALLBACK
        and one.causes[0].hog.pid
    ]
    rows = columns.records(recording.table("tasks", start_us, end_us, ("pid", "start_ticks"))) if pids else []
    started = {row["pid"]: row["start_ticks"] for row in rows if row["start_ticks"] is not None}
    return [(pid, started[pid]) for pid in dict.fromkeys(pids) if pid is not None and pid in started]


# --- for a person ----------------------------------------------------------------------------------------------------


def sentence(look: CloserLook, call: Followed | None, callers: tuple[str, ...] = ()) -> str:
    """ "python3 (agent.py:132, poll) reads /proc/net/tcp 71 times a second, 14 ms each" """
    place = look.place or (" > ".join(callers) if callers else None)
    where = f" ({place})" if place else ""
    if call is None:
        return f"{look.comm}{where} {_without_calls(look)}"
    many = call.threads > 1
    who = f"{call.threads} threads of {look.comm}{where}" if many else f"{look.comm}{where}"
    said = f"{who} {_does(call, many=many)} {rate_text(call.per_s)}"
    if call.took_us is not None and call.took_us >= _SHOWN_US:
        said += f", {_each(call.took_us)} each"
    if call.bytes_per_s >= _SHOWN_BYTES_PER_S and call.call not in LENGTH:
        said += f", {size_text(call.bytes_per_s)} a second"
    if call.calls and call.failed * 10 >= call.calls * 9:
        said += f"; all of them fail ({call.error})" if call.failed == call.calls else f"; most fail ({call.error})"
    return said


def _without_calls(look: CloserLook) -> str:
    if look.why:
        return f"was looked at: {look.why}"
    if look.state == "R":
        return "made no system call that ended in a second, and was running"
    return "made no system call in a second" + (f", and slept in {look.wchan}" if look.wchan else "")


def _does(call: Followed, *, many: bool) -> str:
    """ "reads /proc/net/tcp", "call sched_yield", with the name of the call where the verb is not it."""
    name, what = call.call, call.object
    verb = "lists" if name in _LISTS else "reads" if name in READS else "writes" if name in WRITES else None
    verb = "opens" if name in _OPENS else verb
    if verb is None or what is None:
        on = f" on {what}" if what and name not in LENGTH else f" of {what}" if what else ""
        return f"{'call' if many else 'calls'} {name}{on}"
    preposition = " to" if verb == "writes" else " from" if verb == "reads" and what.startswith("a ") else ""
    shown = verb[:-1] if many else verb
    return f"{shown}{preposition} {what}" + ("" if name in (verb[:-1], "openat") else f" ({name})")


def rate_text(per_s: float) -> str:
    times = _rounded(per_s)
    if times > 1:
        return f"{times:,} times a second"
    return f"every {1 / per_s:.1f} s" if per_s > 0 else "once"


def _rounded(value: float) -> int:
    """To three digits: it was counted for a tenth of a second."""
    number = round(value)
    return number if number < 1000 else round(number, 3 - len(str(number)))


def _each(us: int) -> str:
    if us >= 1_000_000:
        return f"{us / 1e6:.1f} s"
    return f"{us / 1000:.0f} ms" if us >= 10_000 else f"{us / 1000:.1f} ms"
