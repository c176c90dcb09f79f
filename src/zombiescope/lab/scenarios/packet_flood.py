"""A flood of packets that one core processes alone, with so few rules that the packets are the work."""

from __future__ import annotations

from zombiescope.lab.flood import flood

SCENARIO = flood(
    "packet-flood",
    "irq-imbalance",
    rules=150,
    title="One core processes all packets",
    frames="6.18: process_backlog < __napi_poll < net_rx_action < handle_softirqs in ksoftirqd/0, 94% softirq",
)
