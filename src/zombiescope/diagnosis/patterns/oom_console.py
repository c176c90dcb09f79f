"""The report of an OOM kill is printed to a slow serial console, with interrupts off."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.base.text import number
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, measured
from zombiescope.diagnosis.plan import set_sysctl, setting
from zombiescope.diagnosis.thresholds import CONSOLE_AROUND_US
from zombiescope.model.plans.step import Step, advice, command
from zombiescope.store.thresholds import HOLE_US

SERIAL = ("ttyS", "ttyAMA", "hvc", "ttyUSB", "ttyMSM")
OOM = ("oom_kill", "oom_invoked", "oom_summary", "memcg_oom")
_PRINTS = (
    "console_flush_all console_unlock console_emit_next_record serial8250_console_write univ8250_console_write "
    "wait_for_xmitr io_serial_in console_cont_flush call_console_drivers nbcon_emit_next_record"
    " pl011_console_write"
)
ERRORS = 4
"""Console log level: below it are errors and worse."""


def examine(case: Case) -> Evidence:
    reports = [event for event in case.facts.events if event.kind in OOM and _near(case, event.at_us)]
    blind = not reports and case.facts.lacks("kernel log")
    first_us = min((event.at_us for event in reports), default=None)
    found = [_console(case), _oom(None if blind else len(reports), first_us), *_hole(case, first_us)]
    printing = case.cores_in(*_PRINTS.split())
    if printing:
        found.append(cpu_used("console functions took {}", printing, None))
    victim = next((event.fields.get("comm") for event in reports if event.fields.get("comm")), None)
    return Evidence(
        tuple(found),
        case.blamed(Actor(comm=victim)) if isinstance(victim, str) else None,
        "cores are blocked while the kernel prints an OOM report to a slow serial console",
        Fix(
            "keep long kernel reports off the serial console",
            tuple(_steps(case.facts)),
        ),
    )


def _steps(facts: Facts) -> Iterator[Step]:
    yield from set_sysctl(
        facts, "vm.oom_dump_tasks", "0", "no table of all tasks at each OOM kill",
        touches="reports of the OOM killer, in the log too, no longer list every task",
    )  # fmt: skip
    yield from _quieter(facts)
    yield advice("take the serial console off the kernel's command line (console=), if it is not used")


def _quieter(facts: Facts) -> Iterator[Step]:
    """Only the first of the four numbers is lowered; where it is low already, nothing is. Nor where the recorder itself
    records only what the console prints (printk:console before 5.19)."""
    version = facts.kernel
    if facts.node.get("kernel_log") == "printk:console" and (version is None or version < (5, 19)):
        return
    levels = (setting(facts, "kernel.printk") or "").split()
    if not levels:
        yield command("sysctl kernel.printk", f"the first number: from {ERRORS} down only errors go to the console")
    elif (number(levels[0]) or 0) > ERRORS:
        yield from set_sysctl(
            facts, "kernel.printk", " ".join([str(ERRORS), *levels[1:]]),
            "only errors to the console; the log keeps everything",
            touches="warnings no longer reach the console",
        )  # fmt: skip


def _near(case: Case, at_us: int) -> bool:
    return case.from_us - CONSOLE_AROUND_US <= at_us <= case.to_us + CONSOLE_AROUND_US


def _console(case: Case) -> Measurement:
    consoles = case.facts.node.get("consoles")
    if not isinstance(consoles, list):
        return Measurement("consoles are not known", None, None, "node.json", "nothing")
    serial = [str(name) for name in consoles if str(name).startswith(SERIAL)]
    text = f"the kernel prints to {', '.join(serial)}" if serial else "the kernel prints to no serial console"
    return Measurement(text, ", ".join(serial) or "none", None, "node.json", "nothing" if serial else "refutes")


def _oom(count: int | None, at_us: int | None) -> Measurement:
    if count is None:
        return Measurement("whether the OOM killer ran is not known: no kernel log", None, "lines", "events", "nothing")
    return measured(
        f"{count:,} lines about an OOM kill", count, "lines", "events", None if count else False, at_us=at_us
    )


def _hole(case: Case, first_us: int | None) -> list[Measurement]:
    """Interrupts were off: no sampling clock can look inside, so the gap itself is the evidence. A core that stood
    still before there was anything to print did so for another reason."""
    off = [symptom for symptom in case.of_kind("stall") if symptom.facts.get("interrupts_off")]
    holes = [symptom for symptom in off if first_us is not None and symptom.to_us >= first_us]
    if len(holes) < len(off):
        before = max((symptom for symptom in off if symptom not in holes), key=lambda symptom: symptom.facts["gap_us"])
        gap_us, text = int(before.facts["gap_us"]), "core {} took no interrupt for {:.0f} ms before the first line, too"
        return [measured(text.format(before.cpu, gap_us / 1000), gap_us, "us", "cores", None, at_us=before.from_us)]
    if not holes:
        known = case.facts.cores is not None
        return [measured("no core was without interrupts for 100 ms", 0 if known else None, "us", "cores", None)]
    longest = max(holes, key=lambda symptom: symptom.facts["gap_us"])
    gap_us = int(longest.facts["gap_us"])
    return [
        measured(
            f"core {longest.cpu} took no interrupt for {gap_us / 1000:.0f} ms",
            gap_us,
            "us",
            "cores",
            True if gap_us >= HOLE_US else None,
            at_us=longest.from_us,
        )
    ]


PATTERN = Pattern(
    id="oom-console",
    title="An OOM report on a slow serial console",
    proof="literature",
    looks_like="After an OOM kill the kernel prints a line for every task to a serial line at 115,200 baud. Interrupts "
    "are off during that time: cores are blocked for seconds, and profiles show a hole rather than a "
    "function.",
    confirmed_by="A core took no interrupts for 100 ms or more within fifteen seconds of an OOM kill, but not before "
    "it, on a node with a serial console.",
    refuted_by="No OOM kill nearby, or no serial console on the kernel's command line.",
    remedy="Set vm.oom_dump_tasks=0 and a lower console log level, or drop the serial console.",
    stop_gap="print only errors on the console until the next boot (dmesg -n 4)",
    examine=examine,
    symptoms=frozenset({"stall", "event", "nic_starved", "core_saturated"}),
    hog="The task that happened to print: the one that ran out of memory.",
    culprit="The task that was killed, whose memory caused the report.",
    known_from="cep.dev, OOM killer and ENA reset; holes of console writes measured on 6.18",
)
