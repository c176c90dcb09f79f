"""The hypervisor gave the core to somebody else: nothing on this node is to blame."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.model.plans.step import advice, command, note
from zombiescope.store.thresholds import LITTLE_STOLEN, STOLEN_RATIO


def examine(case: Case) -> Evidence:
    return Evidence(
        (_stolen(case),),
        None,
        "the hypervisor took the core away; nothing on this node is to blame",
        Fix(
            "move the node, or take an instance that does not share its cores",
            (
                command("zombiescope cores", "the column steal"),
                note("burstable instances (t3, t4g): look at the CPU credits"),
                advice("ask the provider about the host, with the times of this incident"),
            ),
        ),
    )


def _stolen(case: Case) -> Measurement:
    ratio = case.core_mean("steal")
    if ratio is None:
        return Measurement("stolen time was not measured", None, "ratio", "cores", "nothing")
    stolen = case.of_kind("steal")
    says = True if stolen and ratio >= STOLEN_RATIO / 2 else False if ratio < LITTLE_STOLEN else None
    return measured(
        f"{ratio * 100:.1f}% of the core was stolen by the hypervisor", round(ratio, 4), "ratio", "cores", says
    )


PATTERN = Pattern(
    id="steal",
    title="The hypervisor takes the core away",
    proof="literature",
    looks_like="Tasks are ready and do not run, samples have holes, and no kernel function is hot.",
    confirmed_by="30% or more of a core was stolen for two seconds or longer (steal in /proc/stat).",
    refuted_by="Less than 5% was stolen on the cores of the incident.",
    remedy="Move the node or choose another instance type; nothing on the node helps.",
    no_stop_gap="the host takes the time, and nothing on the node gets it back",
    examine=examine,
    hog="No process on this node.",
    culprit="No process on this node.",
    suspected_first=True,
    known_from="proc(5)",
    repair="CONTACT_SUPPORT",
)
