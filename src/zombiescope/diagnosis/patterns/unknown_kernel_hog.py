"""No pattern fits: the hog, its unit and its kernel path are named all the same."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Finding, Pattern


def examine(case: Case) -> Finding:
    if case.hog_task is None:
        return Finding((), None, "the cause is not known: nothing ran there that was sampled", Fix(_NEXT, _STEPS))
    where = f" in {case.frames[-1]}" if case.frames else ""
    return Finding(
        (),
        None,
        f"the cause is not known; {case.hog.name} was busy in the kernel{where}",
        Fix(_NEXT, _STEPS),
    )


_NEXT = "look at what it does, and record more next time"
_STEPS = (
    "zombiescope flamegraph --at TIME   # what it did, second by second",
    "zombiescope diff QUIET BAD         # what is different from a quiet minute",
)

PATTERN = Pattern(
    id="unknown-kernel-hog",
    title="A kernel hog that no pattern explains",
    proof="kernel",
    looks_like="A task holds a core in the kernel, and none of the known patterns fits its frames and counters.",
    confirmed_by="Nothing: it is what remains.",
    refuted_by="Any pattern that is confirmed.",
    remedy="Look at the flame graph of the guilty seconds beside that of quiet ones.",
    examine=examine,
    symptoms=frozenset(
        {"core_saturated", "kernel_hog", "stall", "nic_starved", "rt_hog", "run_queue_delay", "above_baseline", "event"}
    ),
)
