"""No pattern fits: the hog, its unit and its kernel path are named all the same, and what to record next time."""

from __future__ import annotations

import re

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix, Words
from zombiescope.diagnosis.pattern import FALLBACK, Finding, Pattern

MOST_GRANTS = 4
_CALL = re.compile(r"(?:__(?:x64|ia32|arm64|s390x|se|do)_sys_|ksys_|__sys_|SyS_)([a-z0-9_]+?)(?:\.|$)")


def examine(case: Case) -> Finding:
    return Finding(
        (), None, _summary(case), Fix("look at what it does, and record more next time", tuple(_steps(case)))
    )


def _summary(case: Case) -> str:
    if case.hog_task is None:
        return "the cause is not known: nothing ran there that was sampled"
    if not case.frames:
        return f"the cause is not known; {case.hog.name} was busy"
    asked = system_call(case.frames)
    return (
        f"the cause is not known; {case.hog.name} was busy in the kernel"
        + (f", in {asked}" if asked else "")
        + f": {' > '.join(case.frames[-2:])}"
    )


def system_call(frames: tuple[str, ...]) -> str | None:
    """What the program asked for, by the name that its manual page has; None for a fault, an interrupt or a kernel
    thread."""
    for name in frames:
        if found := _CALL.match(name):
            return found[1]
    return None


def _steps(case: Case) -> list[str]:
    at, node = case.from_us / 1e6, case.facts
    steps = [
        f"zombiescope flamegraph --at @{at:.0f}   # what it did, second by second",
        "zombiescope diff QUIET BAD   # what is different from a quiet minute",
    ]
    # What would have told more: sources that were missing, with what they need.
    for entry in node.missing[:MOST_GRANTS]:
        if entry.get("grant"):
            steps.append(Words(f"next time record {entry.get('source')}: {entry['grant']}"))
    if node.cores is None:
        steps.append(
            Words("next time record with zombiescope record: a profile alone has no counters to confirm anything with")
        )
    return steps


PATTERN = Pattern(
    id=FALLBACK,
    title="A kernel hog that no pattern explains",
    proof="kernel",
    looks_like="A task holds a core in the kernel, and none of the known patterns fits its frames and counters.",
    confirmed_by="Nothing: it is what remains.",
    refuted_by="Any pattern that is confirmed.",
    remedy="Look at the flame graph of the guilty seconds beside that of quiet ones.",
    examine=examine,
    culprit="Not known.",
)
