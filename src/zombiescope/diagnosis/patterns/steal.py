"""The hypervisor gave the core to somebody else: nothing on this node is to blame."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix, advice, command
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.recording.thresholds import LITTLE_STOLEN, STOLEN_RATIO


def examine(case: Case) -> Evidence:
    return Evidence(
        (_stolen(case),),
        None,
        "the hypervisor took the core away; nothing on this node is to blame",
        Fix(
            "move the node, or take an instance that does not share its cores",
            (
                command("zombiescope cores", "the column steal"),
                advice("burstable instances (t3, t4g): look at the CPU credits"),
                advice("ask the provider about the host, with the times of this incident"),
            ),
        ),
    )


def _stolen(case: Case) -> Measurement:
    still = [symptom for symptom in case.of_kind("steal") if symptom.facts.get("at_once")]
    if still:
        longest = max(still, key=lambda symptom: int(symptom.facts["gap_us"]))
        return measured(longest.text, int(longest.facts["gap_us"]), "us", "cores", True, at_us=longest.from_us)
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
    confirmed_by="30% or more of a core stolen for two seconds or longer (steal of /proc/stat); or no interrupt on "
    "any core for the same 500 ms or more, which nothing on the node does to all of them.",
    refuted_by="Less than 5% stolen on the cores of the incident.",
    remedy="Move the node or take another instance type; nothing on the node helps.",
    examine=examine,
    hog="Nobody on this node.",
    culprit="Nobody on this node.",
    suspected_first=True,
    known_from="proc(5)",
)
