"""Packets that were lost on this node: a card or its queue dropped them, or TCP retransmitted them."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom

DROPS_PER_S = 100
DROP_RATIO = 0.001
"""Of the packets of that direction: a fast card drops a few that are for nobody here."""
RESENT_RATIO = 0.02
LEAST_RESENT = 200


def find(facts: Facts) -> Iterator[Symptom]:
    for name, which in (("rx_drop", "received"), ("tx_drop", "outgoing"), ("rx_fifo", "received")):
        dropped, packets = facts.added("netdev", name), facts.added("netdev", f"{name[:2]}_packets")
        many = dropped is not None and dropped / max(facts.seconds, 1) >= DROPS_PER_S
        if many and (dropped or 0) >= DROP_RATIO * (packets or 0):
            yield Symptom(
                DETECTOR,
                facts.start_us,
                facts.end_us,
                f"network cards dropped {dropped or 0:,} {which} packets ({name})",
                facts={"counter": name, "count": dropped},
            )
    resent, sent = facts.added("snmp", "TcpRetransSegs"), facts.added("snmp", "TcpOutSegs")
    if resent and sent and resent >= LEAST_RESENT and resent / sent >= RESENT_RATIO:
        yield Symptom(
            DETECTOR,
            facts.start_us,
            facts.end_us,
            f"TCP retransmitted {resent:,} of {sent:,} segments",
            facts={"counter": "TcpRetransSegs", "count": resent, "ratio": resent / sent},
        )


DETECTOR = Detector(
    kind="packet_loss",
    title="packets were lost",
    reported_when="network cards dropped 100 packets a second or more and one in a thousand, or TCP retransmitted 2% "
    "of its segments",
    find=find,
    source="counters",
    role="victim",
    about="network",
    has_hog=False,
)
