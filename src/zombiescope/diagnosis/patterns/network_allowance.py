"""The cloud's own limits: packets are queued or dropped by the instance's network allowance, outside this node."""

from __future__ import annotations

import re

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.facts import Count
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.diagnosis.plan import cards, shell
from zombiescope.diagnosis.thresholds import ALLOWANCE_EXCEEDED_PER_S, ENA_COUNTS_SINCE, ENA_NAMES_THE_KERNEL
from zombiescope.model.plans.step import advice, command

COUNTERS = {
    "bw_in_allowance_exceeded": "incoming bandwidth",
    "bw_out_allowance_exceeded": "outgoing bandwidth",
    "pps_allowance_exceeded": "packets a second",
    "conntrack_allowance_exceeded": "tracked connections",
    "linklocal_allowance_exceeded": "DNS, metadata and time service",
}
_NETWORK = ("packet_loss", "nic_starved")


def examine(case: Case) -> Evidence:
    counts = {name: _count(case, name) for name in COUNTERS}
    network = (
        bool(case.of_kind(*_NETWORK)) or case.event("nic_reset", "nic_tx_timeout", "nic_event", "link_down") is not None
    )
    found = [_measurement(name, count, network) for name, count in counts.items()]
    if any(one.says == "confirms" for one in found):
        found = [one for one in found if one.says != "refutes"]
    elif not all(one.says == "refutes" for one in found):
        found = [one for one in found if one.says == "nothing"]
    return Evidence(
        tuple(found),
        None,
        "the instance's network allowance is used up: the cloud drops packets outside this node",
        Fix(
            "take a larger instance, or send less",
            (
                *(
                    command(f"{shell('ethtool', '-S', card)} | grep allowance", "how much, since the driver was loaded")
                    for card in cards(case.facts)
                ),
                advice("linklocal: cache DNS on the node"),
                advice("conntrack: keep connections open instead of making new ones"),
            ),
        ),
    )


def _count(case: Case, name: str) -> Count | None:
    """A counter that stood still has no row; that it was read at all is known from the driver that has it."""
    count = case.count("ethtool", name)
    if count is not None or case.facts.imported:
        return count
    silent = any(entry.get("source") == "NIC statistics" for entry in case.facts.missing)
    return Count(0, case.seconds) if _counts_allowances(case) and not silent else None


def _counts_allowances(case: Case) -> bool:
    nics = case.facts.node.get("nics")
    for text in nics.values() if isinstance(nics, dict) else ():
        version = re.match(r"ena (\d+)\.(\d+)\.(\d+)", str(text))
        if version and ENA_COUNTS_SINCE <= tuple(map(int, version.groups())) < ENA_NAMES_THE_KERNEL:
            return True
    return False


def _measurement(name: str, count: Count | None, network: bool) -> Measurement:
    if count is None:
        return Measurement(f"{name} was not counted", None, "packets", "counters", "nothing")
    text = f"{count.added:,} packets beyond the allowance for {COUNTERS[name]} ({name}) in {count.seconds:.0f} s"
    says = False if count.added == 0 else True if network and count.rate >= ALLOWANCE_EXCEEDED_PER_S else None
    return measured(text, count.added, "packets", "counters", says)


PATTERN = Pattern(
    id="network-allowance",
    title="The instance's network allowance is used up",
    proof="literature",
    looks_like="Packets are lost and TCP retransmits them, but neither the card nor a core of this node dropped them.",
    confirmed_by="The ENA driver counts ten or more packets per second above an allowance, and the node loses packets.",
    refuted_by="None of the five counters advanced.",
    remedy="Use a larger instance, fewer packets, cached DNS or longer-lived connections.",
    stop_gap="slow down the biggest sender, or spread it over nodes: packets above the allowance are dropped",
    examine=examine,
    hog="No process on this node.",
    culprit="The process that sends most; zombiescope does not see flows.",
    suspected_first=True,
    known_from="amzn-drivers, ENA 2.2.10 and later",
)
