"""Firewall rules are too many for the packets that pass them, or are replaced too often."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, measured, signature
from zombiescope.diagnosis.thresholds import IPTABLES_FEW_PACKETS_PER_S, IPTABLES_PACKET_US, IPTABLES_RELOAD_CORES
from zombiescope.model.plans.step import advice, command

_PACKETS = "ipt_do_table ip6t_do_table arpt_do_table ebt_do_table nft_do_chain"
_RELOADS = (
    "do_replace do_ipt_set_ctl do_ip6t_set_ctl xt_replace_table get_counters alloc_counters translate_table "
    "compat_do_replace __do_replace nf_tables_delrule"
    " nf_tables_newrule nf_tables_commit nfnetlink_rcv_batch nf_tables_newtable nft_netdev_event"
)


def examine(case: Case) -> Evidence:
    passing, reloading = case.cores_in(*_PACKETS.split()), case.cores_in(*_RELOADS.split())
    reloads = reloading is not None and passing is not None and reloading > passing
    culprit = case.caller(*_RELOADS.split()) if reloads else case.sender()
    return Evidence(
        (_reload(reloading) if reloads else _cost(case, passing),),
        culprit,
        f"{culprit.subject if culprit else 'somebody'} replaces firewall rules"
        if reloads
        else "each packet passes too many firewall rules" + (f"; {culprit.subject} sends most" if culprit else ""),
        Fix(
            "have fewer rules for a packet to pass, and replace them less often",
            (
                command("iptables-save | wc -l; nft list ruleset | wc -l"),
                advice(
                    "kube-proxy: --iptables-min-sync-period=10s, or the nftables mode, which looks services up in a map"
                ),
                advice("put a rule that accepts established connections first"),
            ),
        ),
    )


def _cost(case: Case, cores: float | None) -> Measurement:
    """CPU a packet, from two sources: samples in the rules, and packets that the cores took from their queues."""
    packets = case.core_count("softnet_processed")
    if cores is None or packets is None:
        return Measurement("packets were not counted", None, "packets", "cores", "nothing")
    each_us = cores * case.seconds * 1e6 / packets.added if packets.added else 0.0
    says: bool | None = True if each_us >= IPTABLES_PACKET_US else None
    if packets.rate < IPTABLES_FEW_PACKETS_PER_S:
        says = False
    text = f"{packets.added:,} packets, {packets.rate:,.0f} a second, spent {each_us:.1f} us each in the rules"
    return measured(text, packets.added, "packets", "cores", says)


def _reload(cores: float | None) -> Measurement:
    return cpu_used("replacing rules took {}", cores or 0.0, True if (cores or 0) >= IPTABLES_RELOAD_CORES else None)


PATTERN = Pattern(
    id="iptables-storm",
    title="Packets traverse thousands of firewall rules",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Softirq time in ipt_do_table or nft_do_chain: every packet is compared with thousands of rules, one "
    "after the other. Or a task repeatedly replaces the whole rule set.",
    confirmed_by="The rules use four microseconds of CPU or more per packet, or replacing them uses 0.3 of a CPU.",
    refuted_by="Fewer than 100 packets a second on those cores.",
    remedy="Shorten the chains (ipsets, maps, nftables or eBPF), and replace rules less often.",
    stop_gap="lengthen the sync period of the program that replaces the rules, or pause it while no service changes",
    examine=examine,
    signatures=(
        signature(_PACKETS, means="packets pass firewall rules"),
        signature(_RELOADS, means="firewall rules are replaced"),
    ),
    scope="core",
    hog="The task that packets interrupted, or ksoftirqd; or the task that reloads the rules.",
    culprit="The program that replaces the rules; for packets, the one that sends most on this node.",
    known_from="kubernetes 37853; measured on 6.18 with 2,000 nft rules",
)
