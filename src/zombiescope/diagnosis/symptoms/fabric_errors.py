"""A port of the fabric that counts errors which it did not count before, flaps, is slower than it was, or stays down.

Ports are those of RDMA cards (InfiniBand, RoCE, EFA) and what `ethtool -S` of their Ethernet side tells. What a counter
means is in kernel/infiniband_counters.py; a level (congestion marks, packets out of order under adaptive routing) is no
error. A link that went down once is what a peer or a switch that is rebooted looks like, and a note at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from zombiescope.base.severity import Severity
from zombiescope.diagnosis.bursts import Burst, Bursts
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import BURST_PAST_US, FABRIC_DOWN_US, FABRIC_KNOWN_READINGS, FABRIC_LEAST_ERRORS
from zombiescope.kernel import infiniband_counters
from zombiescope.kernel.infiniband import ACTIVE
from zombiescope.kernel.infiniband_counters import TROUBLE, Says
from zombiescope.kernel.log_kinds import Subject
from zombiescope.store.columns import Ints

ORDINARY: frozenset[Says] = frozenset({"loss", "receiver", "congestion"})
"""Healthy fabrics have waves of these, so that more of the past has to be known."""
ENDS_JOBS = frozenset({"req_transport_retries_exceeded", "req_rnr_retries_exceeded"})
"""One is enough: a queue gave up, and whoever used it gets an error."""
BY_HOST = frozenset({"suspected_poll_starvation"})
"""What `nic_starved` reports."""
OF_CARDS: frozenset[Says] = frozenset({"cable", "flap", "congestion", "receiver"})
WHERE: dict[Says, Subject] = {
    "cable": "machine", "flap": "machine", "corruption": "machine", "driver": "machine", "congestion": "network",
    "peer": "network", "loss": "network",
}  # fmt: skip
"""What kinds of errors are about: ports with errors of one kind at one time are one incident. Who is too slow to
receive may have been kept from it by whoever took a core."""


@dataclass(slots=True)
class _Found:
    bursts: dict[str, Burst] = field(default_factory=dict)


def find(facts: Facts) -> Iterator[Symptom]:
    found: dict[tuple[str, Says], _Found] = {}
    for name, port, says, burst in (*_ports(facts), *_cards(facts)):
        found.setdefault((port, says), _Found()).bursts[name] = burst
    for (port, says), one in found.items():
        yield _errors(port, says, one.bursts)
    yield from _slower(facts)
    yield from _down(facts)


def _ports(facts: Facts) -> Iterator[tuple[str, str, Says, Burst]]:
    bursts = Bursts(facts, "infiniband")
    for name, port in bursts.moved:
        meaning = infiniband_counters.port(name)
        if meaning is not None and (meaning.says in TROUBLE or meaning.says == "flap"):
            found = bursts.of(name, port)
            yield from ((name, port, meaning.says, one) for one in found if _counts(name, one, meaning.says))


def _cards(facts: Facts) -> Iterator[tuple[str, str, Says, Burst]]:
    bursts = Bursts(facts, "ethtool")
    for name, card in bursts.moved:
        meaning = infiniband_counters.card(name)
        if meaning is not None and meaning.says in OF_CARDS and name not in BY_HOST:
            found = bursts.of(name, card)
            yield from ((name, card, meaning.says, one) for one in found if _counts(name, one, meaning.says))


def _counts(name: str, burst: Burst, says: Says) -> bool:
    """Whether a burst is told. Where little is known of before, only what is nobody's ordinary work."""
    if name not in ENDS_JOBS and burst.added < FABRIC_LEAST_ERRORS.get(says, 1):
        return False
    return burst.known >= FABRIC_KNOWN_READINGS if says in ORDINARY else burst.is_new or says in ("cable", "corruption")


def _errors(port: str, says: Says, bursts: dict[str, Burst]) -> Symptom:
    ordered = sorted(bursts.items(), key=lambda item: -item[1].added)
    from_us, to_us = min(one.from_us for one in bursts.values()), max(one.to_us for one in bursts.values())
    counted = ", ".join(f"{name} +{burst.added:,}" for name, burst in ordered[:4])
    new = any(burst.is_new for burst in bursts.values())
    before = "more than before" if new else "since the recording began"
    ends = bool(ENDS_JOBS & bursts.keys())
    severity: Severity = "critical" if ends else "warning" if new else "info"
    name, burst = ordered[0]
    facts = {"port": port, "interface": port, "says": says, "counter": name, "added": burst.added, "new": new}
    facts |= {"counters": {name: burst.added for name, burst in ordered}, "seconds": round((to_us - from_us) / 1e6, 1)}
    return Symptom(
        DETECTOR, from_us, to_us, f"{port} counted {counted} in {(to_us - from_us) / 1e6:.0f} s, {before}", severity,
        group=says if says in WHERE else None, facts=facts, subject=WHERE.get(says),
        cores=frozenset() if says in WHERE else None,
    )  # fmt: skip


def _slower(facts: Facts) -> Iterator[Symptom]:
    """A port that has lost lanes: its rate fell while it stayed up."""
    for port, time, value in _levels(facts, "rate_mbps"):
        if value[-1] >= value.max() or value[-1] <= 0:
            continue
        at_us, fast, slow = int(time[value == value.max()][-1]), int(value.max()) / 1000, int(value[-1]) / 1000
        text = f"{port} runs at {slow:g} Gb/s, it ran at {fast:g} Gb/s"
        yield _link(port, "cable", "rate_mbps", int(value[-1]), at_us, facts.end_us, text)


def _down(facts: Facts) -> Iterator[Symptom]:
    """A port that was active, went down and did not come back for longer than a reboot takes."""
    for port, time, value in _levels(facts, "state"):
        if value[-1] == ACTIVE or not (value == ACTIVE).any():
            continue
        since_us = int(time[value == ACTIVE][-1])
        if facts.end_us - since_us >= FABRIC_DOWN_US:
            text = f"{port} has been down for {(facts.end_us - since_us) / 1e6:.0f} s"
            yield _link(port, "flap", "state", int(value[-1]), since_us, facts.end_us, text)


def _levels(facts: Facts, name: str) -> Iterator[tuple[str, Ints, Ints]]:
    """Of each port that has one: when it was read, and what it was, from ten minutes before the window on."""
    past = facts.before(facts.start_us, BURST_PAST_US)
    parts = [one.readings("infiniband_link") for one in (past, facts) if one is not None]
    for port in sorted({port for part in parts for named, port in part if named == name}):
        found = [part[name, port] for part in parts if (name, port) in part]
        yield port, np.concatenate([one[0] for one in found]), np.concatenate([one[1] for one in found])


def _link(port: str, says: Says, counter: str, value: int, from_us: int, to_us: int, text: str) -> Symptom:
    known = {"port": port, "interface": port, "says": says, "counter": counter, "added": value}
    return Symptom(DETECTOR, from_us, to_us, text, group=says, facts=known, subject="machine", cores=frozenset())


DETECTOR = Detector(
    kind="fabric_errors",
    title="a port counts errors",
    reported_when="a port of an RDMA card, or its Ethernet side, counts errors that it did not count in the ten "
    "minutes before (ten of the cable, a hundred lost, one corrupted packet, one queue that gave up), "
    "its link went down three times, stays down for four minutes, or lost speed; congestion marks and "
    "out-of-order packets do not count",
    find=find,
    source="counters",
    role="victim",
    about="network",
    has_hog=False,
    weight=3,
    victim="the tasks that use core {cpu}",
)
