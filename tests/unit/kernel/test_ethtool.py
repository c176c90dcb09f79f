"""Driver statistics: which counters are chosen, and real drivers asked for real."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from zombiescope.kernel import ethtool, nic_queue
from zombiescope.kernel.ethtool import MAX_COUNTERS, Ethtool, choose

ENA = [
    "tx_timeout",
    "suspend",
    "wd_expired",
    "admin_q_pause",
    "total_resets",
    "suspected_poll_starvation",
    "bw_in_allowance_exceeded",
    *(f"queue_{queue}_tx_{name}" for queue in range(32) for name in ("cnt", "bytes", "missed_tx", "unmask_interrupt")),
]


def _names(names: list[str]) -> list[str]:
    return [name for _, name in choose(names)]


def test_ena_device_counters_come_before_those_of_queues() -> None:
    chosen = _names(ENA)
    assert chosen[:5] == [
        "tx_timeout",
        "wd_expired",
        "total_resets",
        "suspected_poll_starvation",
        "bw_in_allowance_exceeded",
    ]
    assert chosen[5:] == [f"queue_{queue}_tx_missed_tx" for queue in range(32)]


def test_positions_are_those_of_the_driver() -> None:
    assert all(ENA[position] == name for position, name in choose(ENA))


def test_traffic_is_not_loss() -> None:
    assert _names(["rx_packets", "tx_bytes", "unmask_interrupt", "lost_interrupt", "rx_crc_errors_phy"]) == [
        "lost_interrupt",
        "rx_crc_errors_phy",
    ]


def test_a_card_with_thousands_of_counters_is_bounded() -> None:
    names = [f"rx{queue}_dropped" for queue in range(500)] + ["tx_timeout", "rx_discards_phy"]
    chosen = _names(names)
    assert len(chosen) == MAX_COUNTERS
    assert chosen[:3] == ["tx_timeout", "rx_discards_phy", "rx0_dropped"]


@pytest.fixture
def asked() -> Iterator[Ethtool]:
    asked = Ethtool()
    yield asked
    asked.close()


def test_loopback_has_no_statistics_and_the_kernel_says_why(asked: Ethtool) -> None:
    assert asked.statistics("lo") is None
    assert asked.why == "Operation not supported"


def test_an_interface_that_is_not_there(asked: Ethtool) -> None:
    assert asked.driver("gone0") is None
    assert asked.why == "No such device"
    assert asked.statistics("gone0") is None


def test_the_cards_of_this_machine(asked: Ethtool) -> None:
    for interface in nic_queue.physical_interfaces():
        driver = asked.driver(interface)
        assert driver is None or driver.driver
        counters = asked.statistics(interface)
        if counters is not None:
            assert len(counters) <= MAX_COUNTERS
            assert counters.keys() == (asked.statistics(interface) or {}).keys()


_ASK = """
import json
from zombiescope.kernel.ethtool import Ethtool
asked = Ethtool()
driver = asked.driver("zsv0")
first, second = asked.statistics("zsv0"), asked.statistics("zsv0")
print(json.dumps([driver.driver if driver else None, first, second]))
"""


@pytest.fixture
def veth_namespace(needs: Any) -> Iterator[str]:
    """A network namespace of its own with a veth pair of four queues in it."""
    needs.root()
    needs.program("ip")
    name = f"zombiescope-test-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        link = ["numrxqueues", "4", "numtxqueues", "4", "type", "veth", "peer", "name", "zsv1"]
        subprocess.run(["ip", "-n", name, "link", "add", "zsv0", *link], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.mark.kernel
def test_a_real_veth(veth_namespace: str) -> None:
    asking = ["ip", "netns", "exec", veth_namespace, sys.executable, "-c", _ASK]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run(asking, check=True, capture_output=True, env=environment)

    driver, first, second = json.loads(answer.stdout)
    assert driver == "veth"
    assert any("drops" in name for name in first)
    assert not any(name == "peer_ifindex" for name in first)
    assert first == second == dict.fromkeys(first, 0)


def test_the_count_that_grows_while_it_is_read_is_not_mixed_up(asked: Ethtool, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a driver that has two counters when asked how many, and three when asked for them
    answers = iter(
        [
            ethtool._SSET_INFO.pack(0x37, 0, 2, 2),
            ethtool._HEADER.pack(0x1B, 1, 2) + b"rx_drops".ljust(32, b"\0") + b"tx_timeout".ljust(32, b"\0"),
            ethtool._STATS_HEADER.pack(0x1D, 3) + bytes(8 * 300),
        ]
    )
    monkeypatch.setattr(Ethtool, "_ioctl", lambda *_: next(answers))

    # THEN no value is given a name that may not be its own
    assert asked.statistics("eth0") is None
    assert asked.why is not None
    assert "changed" in asked.why


def test_counters_whose_meaning_is_known_are_taken_before_any_queue() -> None:
    queues = [f"rx{queue}_xdp_errors" for queue in range(300)]
    known = ["module_high_temp", "rx_pci_signal_integrity", "rx_pcs_symbol_err_phy", "link_down_events_phy"]
    chosen = [name for _, name in choose([*queues, *known])]
    assert chosen[: len(known)] == known
    assert len(chosen) == MAX_COUNTERS
