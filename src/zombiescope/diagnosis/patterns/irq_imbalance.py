"""One core takes the packets of the whole card, and has no time for anything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured, signature
from zombiescope.diagnosis.plan import cards, shell, write_file
from zombiescope.diagnosis.thresholds import (
    IRQ_ALONE_FACTOR,
    IRQ_BUSY_PER_S,
    IRQ_OWN_WORK_SHARE,
    IRQ_RULES_SHARE,
    IRQ_SOFTIRQ_RATIO,
    IRQ_SPREAD_FACTOR,
)
from zombiescope.kernel.cpu import parse_list
from zombiescope.model.plans.step import Step, advice, change, command

MOST_CPUS = 8192
"""NET_RX softirqs or packets a second below which packets are not what keeps a core busy."""

_LEAVES = ("ip_finish_output2", "ip6_finish_output2", "__dev_queue_xmit", "packet_sendmsg")
_POLL = (
    "net_rx_action __napi_poll napi_poll process_backlog ena_io_poll mlx5e_napi_poll virtnet_poll bnxt_poll ixgbe_poll"
    " i40e_napi_poll ice_napi_poll gve_napi_poll gve_napi_poll_dqo netvsc_poll __netif_receive_skb_core"
)


def examine(case: Case) -> Evidence:
    found = [*_shares(case), *_rules(case), *_its_own(case)]
    squeezed = case.core_count("softnet_squeezed")
    if squeezed is not None:
        found.append(
            measured(f"polling was cut short {squeezed.added:,} times", squeezed.added, "times", "cores", None)
        )
    busiest = _busiest(case)
    place = "one core" if busiest is None else f"core {busiest.cpu}"
    return Evidence(
        tuple(found),
        case.sender() or case.answerable_hog,
        f"{place} takes all packets alone while the other cores have room",
        Fix(
            "spread the card's queues over the cores",
            tuple(_steps(case, None if busiest is None else busiest.cpu)),
        ),
    )


def _steps(case: Case, cpu: int | None) -> Iterator[Step]:
    """About the cards that this core serves, as far as that was recorded; else about all."""
    served = {str(row["nic"]) for row in case.facts.queues if cpu in parse_list(str(row["cpus"] or "").encode())}
    known = cards(case.facts)
    for card in [one for one in known if one in served] or known:
        queues = {row["queue"] for row in case.facts.queues if row["nic"] == card}
        has = f"{len(queues)} are in use; " if queues else ""
        yield command(shell("ethtool", "-l", card), f"queues: {has}'Pre-set maximums' are how many it can have")
        yield advice(
            f"if {card} can have more: ethtool -L with a number between what it has and its maximum; fewer queues than "
            "now would make it worse, and the card pauses for a moment"
        )
        if len([queue for queue in queues if not str(queue).startswith("tx")]) == 1:
            yield from _spread(case, card)
    if not known:
        yield command("ip -br link", "which cards there are")
    yield command("grep -iE 'rx|tx|eth|ens|virtio|mlx|ena' /proc/interrupts", "which core serves which queue")
    yield change(
        "systemctl enable --now irqbalance",
        "let irqbalance spread the interrupts over the cores",
        touches="the cores of all interrupts of this node; those that were pinned by hand are moved too",
        undo="systemctl disable --now irqbalance",
        risk="what was pinned on purpose, for a low latency or for NUMA, is not any more",
        verify="systemctl is-active irqbalance",
    )


def _spread(case: Case, card: str) -> Iterator[Step]:
    """Receive packet steering, for a card with one queue: all cores that the node had."""
    cpus = case.facts.node.get("cpus")
    online = cpus.get("online") if isinstance(cpus, dict) else None
    if not isinstance(online, list) or len(online) < 2:
        return
    mask = cpu_mask(one for one in online if isinstance(one, int))
    yield from write_file(
        f"/sys/class/net/{card}/queues/rx-0/rps_cpus", mask, None, f"{card} has one queue",
        touches=f"packets of {card} are handled by all {len(online)} cores, those of the jobs too",
    )  # fmt: skip


def cpu_mask(cpus: Iterable[int]) -> str:
    """As the kernel reads it: hexadecimal, in groups of 32 bits."""
    number = sum(1 << cpu for cpu in set(cpus) if 0 <= cpu < MOST_CPUS)
    groups: list[int] = []
    while number or not groups:
        groups.append(number & 0xFFFFFFFF)
        number >>= 32
    return ",".join([f"{groups[-1]:x}", *(f"{group:08x}" for group in reversed(groups[:-1]))])


def _rules(case: Case) -> list[Measurement]:
    """Where most of the polling is spent in firewall rules, the work for a packet is too much, not the packets."""
    polling = case.core_profile.total(*_POLL.split())
    rules = case.core_profile.under(
        frozenset(_POLL.split()), frozenset({"nft_do_chain", "ipt_do_table", "ip6t_do_table"})
    )
    if not polling or not rules:
        return []
    share = rules / polling
    text = f"firewall rules took {share * 100:.0f}% of the polling"
    return [measured(text, round(share, 4), "ratio", "samples", False if share >= IRQ_RULES_SHARE else None)]


def _its_own(case: Case) -> list[Measurement]:
    """Packets to this machine itself (loopback, a veth pair) are taken by whoever sends them, in the very call: there
    is no card, and nothing to spread."""
    polls = frozenset(_POLL.split())
    polling, inside = case.core_profile.total(*polls), case.core_profile.under(frozenset(_LEAVES), polls)
    if not inside:
        return []
    share = inside / polling
    text = f"{share * 100:.0f}% of the polling is done inside calls that send"
    return [measured(text, round(share, 4), "ratio", "samples", False if share >= IRQ_OWN_WORK_SHARE else None)]


class _Busiest(NamedTuple):
    """The core that takes most packets: its part of all, how many times those of the next one, and how many a second
    it takes."""

    cpu: int
    share: float
    times_the_next: float
    per_s: float


def _busiest(case: Case) -> _Busiest | None:
    cores, span = case.facts.cores, case.seconds_of_cores()
    if cores is None or span is None:
        return None
    packets = np.nan_to_num(cores.counts["softnet_processed"][:, span[0] : span[1]]).sum(axis=1)
    if np.isnan(cores.counts["softnet_processed"]).all():
        return None
    total = float(packets.sum())
    row = int(np.argmax(packets))
    most, following = float(packets[row]), float(np.delete(packets, row).max(initial=0.0))
    share = most / total if total else 0.0
    return _Busiest(cores.cpus[row], share, most / max(following, 1.0), most / (span[1] - span[0]))


def _shares(case: Case) -> list[Measurement]:
    busiest = _busiest(case)
    if busiest is None:
        return [Measurement("packets were not counted by core", None, "ratio", "cores", "nothing")]
    cpu, share, times, per_s = busiest
    many = len(case.facts.cores.cpus) if case.facts.cores else 1
    ratio = case.core_mean("softirq")
    says: bool | None = None
    if per_s < IRQ_BUSY_PER_S or (many > 1 and times < IRQ_SPREAD_FACTOR):
        says = False
    elif times >= IRQ_ALONE_FACTOR and many > 1 and (ratio or 0) >= IRQ_SOFTIRQ_RATIO:
        says = True
    text = f"core {cpu} took {per_s:,.0f} packets a second, {share * 100:.0f}% of all"
    found = [measured(text, round(share, 4), "ratio", "cores", says)]
    if ratio is not None:
        found.append(measured(f"softirqs took {ratio * 100:.0f}% of the core", round(ratio, 4), "ratio", "cores", None))
    return found


PATTERN = Pattern(
    id="irq-imbalance",
    title="One core receives all packets",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="ksoftirqd of one core, or whatever runs there, spends its time in net_rx_action; softirq time, not "
    "system time, fills that core while the others are idle.",
    confirmed_by="One core receives four times as many packets as any other and spends half of its time in softirqs.",
    refuted_by="Another core receives nearly as many, or this one fewer than 1,000 per second; firewall rules take "
    "half of the polling time, which is iptables-storm; or the senders receive the packets themselves, as "
    "on loopback.",
    remedy="Use more queues, spread their interrupts (irqbalance), or spread packets by RPS.",
    stop_gap="move other tasks off that core (taskset, AllowedCPUs=), so it only handles packets",
    examine=examine,
    numbers_tell=True,
    signatures=(signature(_POLL, means="packets are taken from the card"),),
    scope="core",
    hog="ksoftirqd of that core, or the task that was interrupted.",
    culprit="The process that sends most, if it runs on this node.",
    known_from="coreos 2135, irqbalance 122 and 125; measured on 6.18 with RPS to one core",
)
