"""Errors of the fabric: which port, which counter, since when, and where they come from."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.diagnosis.plan import is_plain, shell
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.kernel.infiniband_counters import FULL
from zombiescope.model.plans.step import Step, advice, command

MEANS = {
    "corruption": "packets arrive damaged though every link says they are whole",
    "cable": "bits arrive damaged: the cable, the optic or the port at the other end",
    "flap": "its link goes down again and again, or stays down",
    "driver": "its driver or its firmware fails",
    "peer": "a peer does not answer",
    "loss": "packets get lost between here and a peer",
    "congestion": "the fabric had no room for its packets in time",
    "receiver": "this node does not take packets fast enough",
}
"""What is nearest to a cause comes first."""
DO = {
    "corruption": "take the node out of training: results may be wrong; replace cable and card in turn",
    "cable": "clean or replace the cable or the optic, and try another port of the switch",
    "flap": "look at the switch port at the other end: was the peer rebooted? Then reseat or replace the cable",
    "driver": "look for the driver's lines in the log; update firmware and driver together",
    "peer": "look at the peers of this job: one of them, or the path to it, is gone",
    "loss": "look at the switches between: drops, PFC and ECN settings; the same on the peers",
    "congestion": "look for incast and for the slow receiver behind the switch; check PFC and ECN",
    "receiver": "look for a starved core on this node at that time: who should have posted buffers did not run",
}
_HELD = ("core_saturated", "run_queue_delay", "stall", "rt_hog", "kernel_hog")


def examine(case: Case) -> Evidence:
    found = sorted(case.of_kind("fabric_errors"), key=lambda one: (_place(one), one.from_us))
    if not found:
        return Evidence(())
    first = found[0]
    if _says(first) == "receiver" and case.of_kind(*_HELD):
        return Evidence(())  # it was kept from receiving: whoever took the core is the cause
    return Evidence(
        (*(_measurement(one) for one in found), *_full(case), *_starved(first)),
        None,
        _summary(first, found),
        Fix(DO[_says(first)], tuple(_steps(found))),
        is_ordinary=all(one.severity == "info" for one in found),
    )


def _says(symptom: Symptom) -> str:
    return str(symptom.facts.get("says"))


def _place(symptom: Symptom) -> int:
    return list(MEANS).index(_says(symptom)) if _says(symptom) in MEANS else len(MEANS)


def _summary(first: Symptom, found: list[Symptom]) -> str:
    others = len({one.facts["port"] for one in found}) - 1
    more = f" (and {others} more)" if others else ""
    return f"the port {first.facts['port']}{more} has errors: {MEANS[_says(first)]} ({first.facts['counter']})"


def _measurement(one: Symptom) -> Measurement:
    says, new = _says(one), one.facts.get("new", True)
    return Measurement(
        f"{one.text}: {MEANS[says]}", one.facts["added"], "errors", "counters", "confirms", one.from_us,
        counter=str(one.facts["counter"]), weight=1.0 if new else 0.5,
    )  # fmt: skip


def _full(case: Case) -> list[Measurement]:
    """Counters that stood at their maximum: what they would have counted is not known."""
    blind = next((gap for gap in case.facts.gaps if gap.source == FULL), None)
    return [] if blind is None else [Measurement(blind.why, None, None, "gaps", "nothing")]


def _starved(first: Symptom) -> list[Measurement]:
    if _says(first) != "receiver":
        return []
    return [Measurement("no core of this node was lost then", 0, "cores", "cores", "nothing")]


def _steps(found: list[Symptom]) -> list[Step]:
    ports = list(dict.fromkeys(str(one.facts["port"]) for one in found))[:4]
    steps: list[Step] = []
    for name in ports:
        device, slash, port = name.partition("/")
        if slash and is_plain(device):
            folder = f"/sys/class/infiniband/{device}/ports/{port}"
            steps.append(command(shell("grep", "-rs", ".", f"{folder}/counters", f"{folder}/hw_counters"), "all of it"))
        elif is_plain(name):
            steps.append(command(shell("ethtool", "-S", name), "its counters"))
    kinds = list(dict.fromkeys(_says(one) for one in found))
    return [*steps, *(advice(DO[kind]) for kind in kinds[1:4] if kind in DO)]


PATTERN = Pattern(
    id="fabric-errors",
    title="A fabric port has errors",
    proof="literature",
    looks_like="Collectives are slow, time out or fail with transport errors; the cores of this node may all be fine.",
    confirmed_by="Error counters of an RDMA port, or of its Ethernet side, rise faster than in the ten minutes before. "
    "Which counters rise tells whether the cable, the fabric, a peer or this node is at fault.",
    refuted_by="Nothing: the pattern is only considered when a port counts errors. If this node was too slow to "
    "receive because a core was taken at that time, the process that took the core is the cause instead. "
    "Congestion marks, out-of-order packets and a single link flap do not count.",
    remedy="Depends on the counter: replace the cable or optic (symbol_error); check the switches (discards, "
    "retransmits), the peers (ack timeouts), or this node for a starved core (out_of_buffer, rnr_nak).",
    stop_gap="keep new jobs off the node until the port is clean: a collective is only as fast as its worst port",
    examine=examine,
    symptoms=frozenset({"fabric_errors"}),
    hog="No process on this node, unless it was too slow to receive.",
    culprit="No process on this node.",
    known_from="drivers/infiniband/core/sysfs.c, mlx5 and EFA drivers, Documentation/networking mlx5 counters",
    repair="CONTACT_SUPPORT",
)
