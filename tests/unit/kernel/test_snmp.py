"""/proc/net/snmp and /proc/net/netstat of several kernels."""

from collections.abc import Callable
from pathlib import Path

from zombiescope.kernel import snmp

Node = Callable[[str], str]


def test_counters_are_found_by_name_whatever_their_column(node: Node) -> None:
    old, new = snmp.read(node("el7-3.10")), snmp.read(node("ubuntu-5.4-v1"))
    assert old is not None
    assert new is not None
    assert (old["TcpRetransSegs"], new["TcpRetransSegs"]) == (1204, 120331)
    assert (old["TcpExtTCPTimeouts"], new["TcpExtTCPTimeouts"]) == (90, 9021)
    assert (old["TcpExtListenDrops"], new["TcpExtListenDrops"]) == (5, 1)
    assert (old["TcpExtTCPRcvQDrop"], new["TcpExtTCPRcvQDrop"]) == (None, 2)


def test_one_file_alone_leaves_the_rest_unmeasured(node: Node) -> None:
    data = Path(node("ubuntu-5.4-v1"), "proc/net/snmp").read_bytes()
    found = snmp.parse(data)
    assert found["TcpInSegs"] == 900331100
    assert found["TcpExtListenDrops"] is None
    assert tuple(found) == snmp.FIELDS


def test_values_without_their_names_are_not_guessed() -> None:
    assert snmp.parse(b"Tcp: InSegs OutSegs\nUdp: 1 2\n")["TcpInSegs"] is None
    assert snmp.parse(b"Tcp: InSegs OutSegs\nTcp: 1\n")["TcpOutSegs"] is None


def test_this_machine_counts_up() -> None:
    before, after = snmp.read(), snmp.read()
    assert before is not None
    assert after is not None
    assert before["TcpInSegs"] is not None
    assert before["TcpInSegs"] <= (after["TcpInSegs"] or 0)
