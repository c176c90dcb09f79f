"""Packets that were lost on this node: a card or its queue dropped them, or TCP retransmitted them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import (
    CARD_DROP_RATIO,
    CARD_DROPS_PER_S,
    TCP_LEAST_RESENT,
    TCP_RESENT_ONE_PEER_RATIO,
    TCP_RESENT_RATIO,
)


def find(facts: Facts) -> Iterator[Symptom]:
    for name, which in (("rx_drop", "received"), ("tx_drop", "outgoing"), ("rx_fifo", "received")):
        dropped, packets = facts.added("netdev", name), facts.added("netdev", f"{name[:2]}_packets")
        many = dropped is not None and dropped / max(facts.seconds, 1) >= CARD_DROPS_PER_S
        if many and (dropped or 0) >= CARD_DROP_RATIO * (packets or 0):
            yield Symptom(
                DETECTOR,
                facts.start_us,
                facts.end_us,
                f"network cards dropped {dropped or 0:,} {which} packets ({name})",
                facts={"counter": name, "count": dropped},
            )
    resent, sent = facts.added("snmp", "TcpRetransSegs"), facts.added("snmp", "TcpOutSegs")
    if resent and sent and resent >= TCP_LEAST_RESENT and resent / sent >= TCP_RESENT_RATIO:
        yield Symptom(
            DETECTOR,
            facts.start_us,
            facts.end_us,
            f"TCP retransmitted {resent:,} of {sent:,} segments{_to_whom(facts)}",
            facts={"counter": "TcpRetransSegs", "count": resent, "ratio": resent / sent},
        )


def _to_whom(facts: Facts) -> str:
    """Where one look at the sockets says that most of it went to one peer (recorder/retransmits.py)."""
    looks = [event.fields for event in facts.events if event.kind == "tcp_retransmits"]
    said = max(looks, key=lambda fields: _count(fields, "resent"), default={})
    resent, of_peer, peer = _count(said, "resent"), _count(said, "peer_resent"), said.get("peer")
    if not isinstance(peer, str) or not resent or of_peer < TCP_RESENT_ONE_PEER_RATIO * resent:
        return ""
    return f", most of them to {peer} ({of_peer:,} of {resent:,} that were looked at)"


def _count(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) and value > 0 else 0


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
