"""The network card was reset while the cores that serve it had time for it: the card, its host or the cable did it.

Softirqs come before any program, so a core that computes still serves its card; what keeps a card waiting is kernel or
real-time work on a core that serves it. A driver that names the device as the reason is believed.
"""

from __future__ import annotations

import numpy as np

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.diagnosis.plan import cards, shell
from zombiescope.diagnosis.symptom import Symptom, first_event
from zombiescope.diagnosis.thresholds import EVENT_LED_TO_US, NIC_RESET_CORE_HELD_RATIO, NIC_RESET_CORE_IDLE_RATIO
from zombiescope.kernel import log_kinds
from zombiescope.model.plans.step import Step, advice, command

EVENTS = ("nic_reset", "nic_tx_timeout", "nic_event", "link_down")
DEVICE = log_kinds.DEVICE_REASONS
SUSPECTS_DEVICE = frozenset({"keep_alive_to", "miss_interrupt"})
"""Reasons that a starved core can be behind as well."""


def examine(case: Case) -> Evidence:
    reset = first_event(case.group.symptoms, *EVENTS)
    if reset is None:
        return Evidence(())
    said = _said(case)
    by_device = any(one.says == "confirms" for one in said) and _reason(case) in DEVICE
    busiest = _busiest(case, reset)
    if by_device and busiest.says == "refutes":
        busiest = Measurement(busiest.fact, busiest.value, busiest.value_unit, busiest.source, "nothing", busiest.at_us)
    why = log_kinds.REASONS.get(str(_reason(case)))
    return Evidence((busiest, *said), None, _summary(reset, why, busiest.says == "confirms"), _fix(case, reset))


def _summary(reset: Symptom, why: str | None, had_time: bool) -> str:
    card = log_kinds.card_of(reset.facts)
    what = "lost its link" if reset.facts["event"] == "link_down" else "was reset by its driver"
    reason = f": {why}" if why else ""
    cores = "the cores that serve it had time, so " if had_time else ""
    return f"{card} {what}{reason}; {cores}look at the card and its host, not at this node"


def _fix(case: Case, reset: Symptom) -> Fix:
    said = reset.facts.get("interface")
    names = [str(said)] if said else cards(case.facts)
    look = [command(f"{shell('ethtool', '-S', name)} | grep -iE 'reset|timeout|err'", "its counters") for name in names]
    steps: list[Step] = [command("dmesg -T | grep -iE 'ena|mlx|nic|link|pcie'"), *look]
    return Fix(
        "look outside the node: card, host, firmware, driver",
        (*steps, advice("give the provider the instance and the times of the resets")),
    )


def _busiest(case: Case, reset: Symptom) -> Measurement:
    """The most that a core spent in the kernel in a second of the ten before the reset: of those that serve the card,
    or of all where it is not known which do. Then one that was held may be another one, and refutes nothing."""
    unknown = Measurement("what the cores did before the reset was not measured", None, "ratio", "cores", "nothing")
    cores, served = case.facts.cores, _served_by(case)
    if cores is None:
        return unknown
    rows = [row for row, cpu in enumerate(cores.cpus) if served is None or cpu in served]
    last = max(1, cores.second(reset.from_us) + 1)
    first = max(0, cores.second(reset.from_us - EVENT_LED_TO_US))
    part = np.where(cores.measured, cores.kernel, np.nan)[rows, first:last]
    if not part.size or np.isnan(part).all():
        return unknown
    row = int(np.argmax(np.nanmax(np.nan_to_num(part), axis=1)))
    most, cpu = float(np.nanmax(part)), cores.cpus[rows[row]]
    real_time = next((one for one in case.of_kind("rt_hog") if served is None or one.cpu in served), None)
    held = most >= NIC_RESET_CORE_HELD_RATIO or real_time is not None
    says = (None if served is None else False) if held else True if most < NIC_RESET_CORE_IDLE_RATIO else None
    which = "the busiest core before the reset" if served is None else "the busiest core that serves the card"
    text = f"{which}, {cpu}, was {most * 100:.0f}% in the kernel in its worst second"
    if real_time is not None:
        text += f"; {real_time.facts.get('comm')} held core {real_time.cpu} at real-time priority"
    return measured(text, round(most, 4), "ratio", "cores", says, at_us=reset.from_us)


def _served_by(case: Case) -> frozenset[int] | None:
    known = [one.cores for one in case.of_kind("event") if one.facts.get("event") in EVENTS and one.cores is not None]
    return frozenset(cpu for cores in known for cpu in cores) or None


def _lines(case: Case) -> list[Symptom]:
    return [one for one in case.of_kind("event") if one.facts.get("event") in EVENTS]


def _reason(case: Case) -> str | None:
    """The driver's own; one that names the device before any other."""
    reasons = [str(one.facts["reset_reason"]) for one in _lines(case) if one.facts.get("reset_reason")]
    return next((one for one in reasons if one in DEVICE | SUSPECTS_DEVICE), reasons[0] if reasons else None)


def _said(case: Case) -> list[Measurement]:
    """What the driver itself said about the reason."""
    found = []
    for symptom in _lines(case):
        reason, scheduled = symptom.facts.get("reset_reason"), symptom.facts.get("napi_scheduled")
        if reason in DEVICE | SUSPECTS_DEVICE:
            text = f"the driver named the device as the reason ({reason})"
            found.append(Measurement(text, str(reason), None, "events", "confirms", symptom.from_us))
        elif scheduled == 1:
            text = "the driver reported that its poll loop was scheduled and did not run: it was starved"
            found.append(Measurement(text, 1, None, "events", "refutes", symptom.from_us))
    return sorted(found, key=lambda one: one.value not in DEVICE)[:1]


PATTERN = Pattern(
    id="hardware-nic-reset",
    title="The network card was reset, and no busy core explains it",
    proof="literature",
    looks_like="The driver resets the card, or the link goes down, and no core that serves it was busy before.",
    confirmed_by="No core that serves the card (or no core at all, if the mapping was not recorded) spent half of a "
    "second in the kernel in the ten seconds before; or the driver blames the device (keep-alive, admin "
    "queue, lost interrupt, device request).",
    refuted_by="A core that serves the card was 90% in the kernel, or held by a real-time task, before the reset; or "
    "the driver reports that its poll loop was scheduled and did not run. Neither refutes a driver that "
    "reports that the device itself requested the reset or does not answer. Programs that compute refute "
    "nothing.",
    remedy="Check the card, its firmware, the host and the provider: nothing on the node explains it.",
    stop_gap="cordon the node until the resets stop, and resume its jobs from their checkpoints elsewhere",
    examine=examine,
    symptoms=frozenset({"event"}),
    hog="No process on this node.",
    culprit="No process on this node.",
    known_from="ena_netdev.c; ENA_Linux_Best_Practices",
    repair="CONTACT_SUPPORT",
)
