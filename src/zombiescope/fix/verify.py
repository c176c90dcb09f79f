"""Whether it helped: what the recorder wrote after the last step, over a stated window.

Each check says yes, no, or that it cannot know; and nothing is verified as long as one of them cannot. A node that
nobody records, a window that is too short, a source that was blind: all of these are "can't tell", never "fixed".
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.query.cgroups import Census, CgroupHistory
from zombiescope.store.reader import Recording

SHORTEST_S = 20.0
LATE_US = 15 * SECOND_US
"""The recorder writes once a second; one that is further behind than this does not record the window."""
NAMES_ONLY = ("systemd", "containers")
"""Sources that say who somebody is: whether anybody suffers is seen without them."""
FEWEST = 5
"""A node at work makes and frees some: growth of so many is none."""
ENDED, STILL = 0.2, 0.5
"""Of the growth that was to be expected: below, it has ended; above, it has not; between, it is not known."""
RELEASED = 0.9
"""Of those there were before the steps: what is released so far, and does not come again in the window, has ended."""
TELLING = 20
"""Growth that would have to be there if nothing had changed; where less is, a quiet window says nothing."""
WINDOWS_BEFORE = 8
"""As long as the window, before it: the steps themselves lie in the last of them, and the leak before."""
RECENT = 5
LONG_AGO_US = 600 * SECOND_US
LONGEST_S = 3600


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool | None
    """None: it cannot be known."""
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    from_us: int
    to_us: int
    checks: tuple[Check, ...]

    @property
    def verified(self) -> bool | None:
        """False where something measured speaks against it; None where it cannot be known."""
        if any(check.ok is False for check in self.checks):
            return False
        return True if self.checks and all(check.ok for check in self.checks) else None

    @property
    def word(self) -> str:
        return {True: "fixed", False: "still happening", None: "can't tell"}[self.verified]

    def document(self) -> dict[str, Any]:
        return {
            "from": self.from_us / 1e6,
            "to": self.to_us / 1e6,
            "verdict": self.word,
            "checks": [{"name": check.name, "ok": check.ok, "text": check.text} for check in self.checks],
        }


def is_written(recording: Recording) -> bool:
    """Whether a recorder goes on with it right now: what is not recorded afterwards cannot be verified."""
    return recording.end_us >= time.time_ns() // 1000 - LATE_US


def unknown(from_us: int, to_us: int, why: str) -> Verdict:
    return Verdict(from_us, to_us, (Check("recorded", None, why),))


def verify(
    recording: Recording, pattern: str, from_us: int, to_us: int, seen: Sequence[tuple[int, int]] = ()
) -> Verdict:
    """Of one window that lies after the last step. `seen`: when the trouble was there before."""
    recorded = _recorded(recording, from_us, to_us, seen)
    if recorded.ok is None:
        return Verdict(from_us, to_us, (recorded,))
    checks = [recorded, _symptom(diagnose(recording, from_us, to_us), pattern, from_us, to_us, seen)]
    if pattern == "zombie-memcg":
        checks.append(_leak(recording, from_us, to_us))
    return Verdict(from_us, to_us, tuple(checks))


def _recorded(recording: Recording, from_us: int, to_us: int, seen: Sequence[tuple[int, int]]) -> Check:
    """A source that was missing already when the trouble was seen is no more missing now: a kernel may not have it."""
    seen_us = max((began_us for began_us, _ in seen if began_us < from_us), default=-1)
    seconds = (to_us - from_us) / SECOND_US
    if seconds < SHORTEST_S:
        return Check("recorded", None, f"{seconds:.0f} s are too short to see anything; at least {SHORTEST_S:.0f} s")
    if recording.end_us < to_us - LATE_US:
        return Check("recorded", None, "no recorder wrote down what happened after the last step")
    for gap in recording.gaps(from_us, to_us):
        lost = min(gap.to_us, to_us) - max(gap.from_us, from_us)
        if gap.source in NAMES_ONLY or gap.from_us <= seen_us:
            continue
        if lost > (to_us - from_us) / 10:
            return Check("recorded", None, f"blind for {lost / SECOND_US:.0f} s of it: {gap.source}: {gap.why}")
    return Check("recorded", True, f"{seconds:.0f} s after the last step were recorded")


# --- is the trouble gone? --------------------------------------------------------------------------------------------


def _symptom(found: Diagnosis, pattern: str, from_us: int, to_us: int, seen: Sequence[tuple[int, int]]) -> Check:
    """Whether a cause of this pattern makes anybody suffer still."""
    if found.blind:
        return Check("symptom", None, "neither cores nor stacks were recorded in it")
    same = [each for each in found.incidents if any(cause.pattern == pattern for cause in each.causes[:1])]
    if same:
        return Check("symptom", False, f"{pattern} is still there: {same[0].causes[0].summary}")
    quiet = f"no incident of {pattern} in it, no core lost to it"
    why = _too_short(from_us, to_us, seen)
    return Check("symptom", True, quiet) if why is None else Check("symptom", None, f"{quiet}; but {why}")


def _too_short(from_us: int, to_us: int, seen: Sequence[tuple[int, int]]) -> str | None:
    """Why a quiet window says nothing: the trouble left longer pauses by itself, or had ended long before."""
    before = sorted(one for one in seen if one[0] < from_us)
    pauses = [after[0] - one[1] for one, after in pairwise(before)][-RECENT:]
    window, pause = to_us - from_us, max(pauses, default=0)
    if pause > window:
        return f"it paused for {pause / SECOND_US:,.0f} s by itself before: {_watch(pause)}"
    since = from_us - max((end for _, end in before), default=from_us)
    if since > max(LONG_AGO_US, 10 * window):
        return f"it was over for {since / SECOND_US:,.0f} s already when the last step was done"
    return None


def _watch(wanted_us: float) -> str:
    """How long would be long enough."""
    seconds = math.ceil(wanted_us / SECOND_US / 60) * 60
    return (
        f"watch for longer, --verify-for {seconds}s" if seconds <= LONGEST_S else "look again with zombiescope cgroups"
    )


# --- has the leak ended? ---------------------------------------------------------------------------------------------


def _leak(recording: Recording, from_us: int, to_us: int) -> Check:
    """The slope of what the kernel counts in the window, against the steepest before it: a leak of eight an hour grows
    by nothing in a minute, ended or not."""
    window = to_us - from_us
    history = CgroupHistory(recording, from_us - (WINDOWS_BEFORE + 1) * window, to_us)
    now = _growth(history, from_us, to_us)
    if now is None:
        return Check("leak", None, "dying memory cgroups were not counted twice in it")
    spans = ((from_us - (each + 1) * window, from_us - each * window) for each in range(WINDOWS_BEFORE))
    earlier = [grown for span in spans if (grown := _growth(history, *span)) is not None]
    text = f"dying memory cgroups: {now.first:,} -> {now.last:,} in {now.seconds:.0f} s"
    slow = now.added <= FEWEST
    if not earlier and slow and (released := _released(history, from_us, to_us, now.last)) is not None:
        ended, told = released
        return Check("leak", ended, f"{text}; {told}")
    if not earlier:
        why = "; how fast they grew before was not counted, so this says nothing" if slow else ""
        return Check("leak", None if slow else False, text + why)
    rate = max(each.rate for each in earlier)
    expected = rate * now.seconds
    if now.added > max(FEWEST, STILL * expected):
        return Check("leak", False, f"{text}; it was {expected:,.0f} before")
    if expected < TELLING:
        wanted = TELLING / rate * SECOND_US if rate > 0 else math.inf
        told = _watch(wanted) if math.isfinite(wanted) else "they did not grow before, either"
        return Check("leak", None, f"{text}; at {max(0.0, rate) * 3600:,.0f} an hour that says nothing: {told}")
    ended = now.added <= max(FEWEST, ENDED * expected)
    return Check(
        "leak", ended or None, f"{text}; it was {expected:,.0f} before" + ("" if ended else ": slower, not ended")
    )


def _released(history: CgroupHistory, from_us: int, to_us: int, last: int) -> tuple[bool, str] | None:
    """Whether nearly all that were dying before the steps are gone and stay so; None where they are not gone."""
    window = to_us - from_us
    peak = max(_dying(history, (from_us - each * window // 2 for each in range(2 * WINDOWS_BEFORE + 1))), default=0)
    gone = peak - last
    if gone < max(TELLING, RELEASED * peak):
        return None
    again = last - min(_dying(history, (from_us + each * window // 20 for each in range(1, 21))), default=last)
    told = f"{gone:,} of the {peak:,} that there were before the steps are released"
    return (True, told) if again <= FEWEST else (False, f"{told}, and {again:,} came again")


def _dying(history: CgroupHistory, moments: Iterable[int]) -> Iterator[int]:
    for at_us in moments:
        found = history.at(at_us).memory
        if found is not None and found.dying is not None:
            yield found.dying


@dataclass(frozen=True, slots=True)
class _Growth:
    first: int
    last: int
    seconds: float

    @property
    def added(self) -> int:
        return self.last - self.first

    @property
    def rate(self) -> float:
        return self.added / self.seconds


def _growth(history: CgroupHistory, from_us: int, to_us: int) -> _Growth | None:
    """Between the first and the last census of a span; None where there are not two, or dying ones are not known."""
    first, last = _first(history, from_us, to_us), history.at(to_us).memory
    if first is None or last is None or last.at_us <= max(first.at_us, from_us):
        return None
    if first.dying is None or last.dying is None:
        return None
    return _Growth(first.dying, last.dying, (last.at_us - first.at_us) / SECOND_US)


def _first(history: CgroupHistory, from_us: int, to_us: int) -> Census | None:
    """The last count before the span; else the first in its first half."""
    moments = (from_us + (to_us - from_us) * part // 20 for part in range(11))
    return next((found for at_us in moments if (found := history.at(at_us).memory) is not None), None)
