"""A network card that counts drops, errors, timeouts or resets, in the kernel or in its driver.

A drop now and then is the rule (packets of protocols that nobody here speaks count too), so it counts against the
packets of the card. Losses that are many are `packet_loss`.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import CARD_TROUBLE_PACKETS_RATIO, CARD_TROUBLE_PER_S
from zombiescope.query.node_counters import Card, cards

_RESETS = ("timeout", "reset", "wd_expired")


def find(facts: Facts) -> Iterator[Symptom]:
    for card in cards(facts.node, facts.sums):
        if card.trouble:
            yield _symptom(facts, card)


def _symptom(facts: Facts, card: Card) -> Symptom:
    counters = sorted(card.trouble.items(), key=lambda item: -item[1])
    packets = card.rx_packets + card.tx_packets
    resets = any(word in name for name in card.trouble for word in _RESETS)
    many = counters[0][1] >= max(CARD_TROUBLE_PER_S * facts.seconds, packets * CARD_TROUBLE_PACKETS_RATIO)
    counted = ", ".join(f"{name} +{count}" for name, count in counters[:4])
    return Symptom(
        DETECTOR,
        facts.start_us,
        facts.end_us,
        f"{card.name} counted {counted} in {packets:,} packets",
        "warning" if resets or many else "info",
        group=card.name,
        facts={"card": card.name, **dict(counters)},
    )


DETECTOR = Detector(
    kind="card_trouble",
    title="a network card counts trouble",
    reported_when="a card counts one error or drop a second and for 0.1% of its packets, or any timeout or reset; "
    "fewer are a note",
    find=find,
    source="counters",
    role="victim",
    about="network",
    begins="window",
    has_hog=False,
    is_remark=True,
)
