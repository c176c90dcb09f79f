"""The clock that the kernel reads the time from is a slow one: a device instead of a register of the processor."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom

SLOW = frozenset({"hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"})


def current(facts: Facts) -> str | None:
    """The clock in use at the end of the window; None where that was not recorded."""
    known = facts.gauges("clocksource", "current", facts.end_us)
    return next((name for name, value in known.items() if value), None)


def find(facts: Facts) -> Iterator[Symptom]:
    name = current(facts)
    if name in SLOW:
        text = f"the clock is {name}: each read takes a microsecond instead of a few dozen ns"
        yield Symptom(DETECTOR, facts.start_us, facts.end_us, text, group="clock", facts={"clocksource": name})


DETECTOR = Detector(
    kind="slow_clock",
    title="the clock is slow",
    reported_when="the kernel reads the time from hpet, acpi_pm or jiffies instead of from the processor",
    find=find,
    source="counters",
    role="victim",
    about="machine",
    begins="window",
    has_hog=False,
    is_remark=True,
)
