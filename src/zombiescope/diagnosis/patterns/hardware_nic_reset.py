"""The network card was reset while every core had time for it: the cause is the card, its host or the cable."""

from __future__ import annotations

import numpy as np

from zombiescope.diagnosis.case import LED_TO_US, Case
from zombiescope.diagnosis.incident import Fix, advice, command
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.diagnosis.plan import cards, shell
from zombiescope.diagnosis.symptom import Symptom

IDLE_RATIO = 0.5
HELD_RATIO = 0.9
EVENTS = ("nic_reset", "nic_tx_timeout", "nic_event", "link_down")
_DEVICE = frozenset({"keep_alive_to", "admin_to", "device_request", "miss_interrupt"})


def examine(case: Case) -> Evidence:
    reset = case.event(*EVENTS)
    if reset is None:
        return Evidence(())
    return Evidence(
        (_busiest(case, reset), *_said(case)),
        None,
        "the network card was reset although every core had time for it: look at the card and its host, not at "
        "this node",
        Fix(
            "look outside the node: card, host, firmware, driver",
            (
                command("dmesg -T | grep -iE 'ena|mlx|nic|link|pcie'"),
                *(
                    command(f"{shell('ethtool', '-S', card)} | grep -iE 'reset|timeout|err'", "what the card counted")
                    for card in cards(case.facts)
                ),
                advice("give the provider the instance and the times of the resets"),
            ),
        ),
    )


def _busiest(case: Case, reset: Symptom) -> Measurement:
    """The most that any core spent in the kernel or in real-time work in a second of the ten before the reset."""
    cores = case.facts.cores
    if cores is None:
        return Measurement("what the cores did before the reset was not measured", None, "ratio", "cores", "nothing")
    last = max(1, cores.second(reset.from_us) + 1)
    first = max(0, cores.second(reset.from_us - LED_TO_US))
    part = np.where(cores.measured, cores.busy, np.nan)[:, first:last]
    if not part.size or np.isnan(part).all():
        return Measurement("what the cores did before the reset was not measured", None, "ratio", "cores", "nothing")
    row = int(np.nanargmax(np.nanmax(np.nan_to_num(part), axis=1)))
    most = float(np.nanmax(part))
    says = True if most < IDLE_RATIO else False if most >= HELD_RATIO else None
    return measured(
        f"the busiest core before the reset, {cores.cpus[row]}, was {most * 100:.0f}% busy in its worst second",
        round(most, 4),
        "ratio",
        "cores",
        says,
        at_us=reset.from_us,
    )


def _said(case: Case) -> list[Measurement]:
    """What the driver itself said about the reason."""
    found = []
    for symptom in case.of_kind("event"):
        if symptom.facts.get("event") not in EVENTS:
            continue
        reason, scheduled = symptom.facts.get("reset_reason"), symptom.facts.get("napi_scheduled")
        if scheduled == 1:
            text = "the driver reported that its poll loop was scheduled and did not run: it was starved"
            found.append(Measurement(text, 1, None, "events", "refutes", symptom.from_us))
        elif reason in _DEVICE:
            text = f"the driver named the device as the reason ({reason})"
            found.append(Measurement(text, str(reason), None, "events", "confirms", symptom.from_us))
    return found[:1]


PATTERN = Pattern(
    id="hardware-nic-reset",
    title="The network card was reset with every core idle",
    proof="literature",
    looks_like="The driver resets the card, or the link goes down, and nothing on the node was busy before.",
    confirmed_by="No core was more than half busy in the ten seconds before; or the driver names the device "
    "(keep-alive, admin queue, lost interrupt, device request).",
    refuted_by="A core was 90% busy before the reset, or the driver reports that its poll loop was scheduled and did "
    "not run.",
    remedy="Look at the card, its firmware, the host and the provider; nothing on the node explains it.",
    examine=examine,
    symptoms=frozenset({"event"}),
    hog="Nobody on this node.",
    culprit="Nobody on this node.",
    known_from="ena_netdev.c; ENA_Linux_Best_Practices",
)
