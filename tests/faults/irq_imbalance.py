"""A flood of packets that one core takes alone, with hardly any rules to pass."""

from __future__ import annotations

from tests.faults.packet_flood import flood

FAULT = flood("irq-imbalance", rules=10)

if __name__ == "__main__":
    FAULT.demonstrate()
