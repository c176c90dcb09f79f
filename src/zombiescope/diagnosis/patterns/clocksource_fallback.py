"""The kernel gave up its fast clock: from then on every look at the time is a slow read of a device."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.announced import announced, evidence
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used
from zombiescope.diagnosis.symptoms.slow_clock import SLOW, current
from zombiescope.diagnosis.thresholds import CLOCK_READING_CORES
from zombiescope.model.plans.step import Step, advice, command, note

READS = ("read_hpet", "acpi_pm_read", "acpi_pm_read_verified", "jiffies_read")


def examine(case: Case) -> Evidence:
    line = announced(case, "clocksource-fallback")
    reading = case.cores_in(*READS)
    if line is None and (reading or 0) < CLOCK_READING_CORES:
        return Evidence(())
    said = evidence(line, _fix(case)).measurements if line is not None else ()
    return Evidence((*said, *_measured(case, reading)), None, _summary(case), _fix(case))


def _measured(case: Case, reading: float | None) -> Iterator[Measurement]:
    name = current(case.facts)
    if name is not None:
        text = f"the clock in use is {name}"
        yield Measurement(text, name, None, "counters", "confirms" if name in SLOW else "nothing")
    if reading:
        confirms = True if reading >= CLOCK_READING_CORES else None
        yield cpu_used("reading that clock took {}", reading, confirms)


def _summary(case: Case) -> str:
    name = current(case.facts)
    slow = f" and reads {name}, a device," if name in SLOW else ""
    return f"the kernel no longer uses the processor's clock{slow} each time a program reads the time"


def _fix(_: Case) -> Fix:
    steps: tuple[Step, ...] = (
        command("grep . /sys/devices/system/clocksource/clocksource0/*_clocksource", "which clock, and which it has"),
        command("dmesg -T | grep -iE 'clocksource|tsc'", "why it was given up"),
        advice("a reboot brings it back; if it is given up again, the processor or its firmware is faulty"),
        note("a core that was held for seconds can make a good clock look bad: look at what happened just before"),
    )
    return Fix("find out why the fast clock was given up; reboot to get it back", steps)


PATTERN = Pattern(
    id="clocksource-fallback",
    title="The kernel gave up its fast clock",
    proof="literature",
    looks_like="Everything that reads the time often is suddenly slow: tracing, logging, databases, collectives.",
    confirmed_by="The kernel logged that the clock is unstable; the current clocksource is hpet, acpi_pm or jiffies; "
    "or the functions that read those use a tenth of a CPU.",
    refuted_by="Nothing: the pattern is only considered when one of these is present.",
    remedy="Reboot. If it happens again, replace the machine or ask its vendor for a firmware update.",
    no_stop_gap="the kernel no longer trusts the fast clock, and forcing it back can make time jump under running jobs",
    examine=examine,
    symptoms=frozenset({"event", "kernel_hog", "core_saturated"}),
    hog="The process that reads the time most often.",
    culprit="No process on this node.",
    known_from="kernel/time/clocksource.c",
)
