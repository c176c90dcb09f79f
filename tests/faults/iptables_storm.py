"""Two thousand firewall rules that every packet of a flood has to pass."""

from __future__ import annotations

from tests.faults.packet_flood import flood

FAULT = flood("iptables-storm", rules=2_000)

if __name__ == "__main__":
    FAULT.demonstrate()
