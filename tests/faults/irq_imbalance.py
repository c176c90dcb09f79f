"""A flood of packets that one core takes alone, with few enough rules that packets are the work."""

from __future__ import annotations

from tests.faults.packet_flood import flood

FAULT = flood("irq-imbalance", rules=150)

if __name__ == "__main__":
    FAULT.demonstrate()
