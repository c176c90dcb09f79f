"""Two thousand firewall rules that every packet of a flood has to pass."""

from __future__ import annotations

from zombiescope.lab.flood import flood

SCENARIO = flood(
    "iptables-storm",
    "iptables-storm",
    rules=2_000,
    title="Thousands of firewall rules for every packet",
    frames="6.18: nft_do_chain 77% < nf_hook_slow < ip_rcv, 90% softirq",
)
