"""Ports of mlx5 on InfiniBand and RoCE, of EFA, and those that do not answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.helpers import rdma_tree

from zombiescope.kernel import infiniband, infiniband_counters
from zombiescope.kernel.infiniband import Port


def test_a_port_of_mlx5_is_read_with_its_link_and_its_data_in_bytes(tmp_path: Path) -> None:
    rdma_tree.mlx5_ib(tmp_path, port_xmit_data=1000, symbol_error=7, out_of_sequence=3)
    root = str(tmp_path)
    assert infiniband.ports(root) == (Port("mlx5_0", "1"),)
    link = infiniband.link(Port("mlx5_0", "1"), root)
    assert (link.state, link.rate_mbps, link.layer) == (4, 400_000, "InfiniBand")
    reading = infiniband.counters(Port("mlx5_0", "1"), root)
    assert reading.failed is None
    assert reading.values["port_xmit_data"] == 4000
    assert reading.values["symbol_error"] == 7
    assert not {"lifespan", "multicast_rcv_packets", "req_cqe_flush_error"} & reading.values.keys()
    assert infiniband.bus_of("mlx5_0", root) == "0000:18:00.0"


def test_efa_has_counters_of_its_port_and_of_the_device(tmp_path: Path) -> None:
    rdma_tree.efa(tmp_path, rx_drops=4, cmds_err=2)
    reading = infiniband.counters(Port("rdmap0s31", "1"), str(tmp_path))
    assert (reading.values["rx_drops"], reading.values["cmds_err"]) == (4, 2)


def test_rates_are_those_that_drivers_print(tmp_path: Path) -> None:
    for rate, mbps in (("2.5 Gb/sec (1X SDR)", 2500), ("56 Gb/sec (4X FDR)", 56_000), ("", None), ("fast", None)):
        rdma_tree.port(tmp_path, "mlx5_0", rate=rate)
        assert infiniband.link(Port("mlx5_0", "1"), str(tmp_path)).rate_mbps == mbps


@pytest.mark.parametrize(
    ("name", "full"),
    [("local_link_integrity_errors", 15), ("link_downed", 255), ("link_error_recovery", 255), ("symbol_error", 65535)],
)
def test_a_full_error_counter_says_nothing(name: str, full: int, tmp_path: Path) -> None:
    rdma_tree.mlx5_ib(tmp_path, **{name: full})  # type: ignore[arg-type]
    reading = infiniband.counters(Port("mlx5_0", "1"), str(tmp_path))
    assert reading.full == [name]
    assert name not in reading.values


def test_a_port_without_pma_has_no_counters_and_is_no_failure(tmp_path: Path) -> None:
    rdma_tree.port(tmp_path, "mlx4_0", pma=rdma_tree.PMA, **dict.fromkeys(rdma_tree.PMA.split(), "N/A (no PMA)"))  # type: ignore[arg-type]
    reading = infiniband.counters(Port("mlx4_0", "1"), str(tmp_path))
    assert (reading.values, reading.failed) == ({}, None)


def test_the_first_file_that_fails_ends_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rdma_tree.mlx5_ib(tmp_path)
    opened: list[str] = []

    def refuses(descriptor: int, size: int) -> bytes:
        opened.append(str(descriptor))
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "read", refuses)
    reading = infiniband.counters(Port("mlx5_0", "1"), str(tmp_path))
    assert reading.failed == ("VL15_dropped", "Invalid argument")
    assert len(opened) == 1


def test_only_counters_of_32_bits_begin_again(tmp_path: Path) -> None:
    near = (1 << 32) - 10
    assert infiniband.wrapped("out_of_buffer", near, 5) == 15
    assert infiniband.wrapped("out_of_buffer", 100, 5) is None
    assert infiniband.wrapped("symbol_error", 65000, 5) is None
    assert infiniband.wrapped("port_xmit_data", near, 5) is None


def test_names_and_numbers_of_devices_are_bounded(tmp_path: Path) -> None:
    for number in range(100):
        rdma_tree.port(tmp_path, f"mlx5_{number}")
    (tmp_path / "sys/class/infiniband/a\nb\x1b[31m").mkdir()
    found = infiniband.ports(str(tmp_path))
    assert len(found) == infiniband.MOST_PORTS
    assert all("\n" not in port.device for port in found)


def test_no_card_no_ports(tmp_path: Path) -> None:
    assert infiniband.ports(str(tmp_path)) == ()


def test_levels_are_no_errors() -> None:
    for name in ("np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets", "out_of_sequence", "port_xmit_wait"):
        meaning = infiniband_counters.port(name)
        assert meaning is not None
        assert meaning.says not in infiniband_counters.TROUBLE


def test_statistics_of_cards_are_known_by_queue_too() -> None:
    assert [getattr(infiniband_counters.card(name), "says", None) for name in (
        "rx_no_buffers_posted[3]", "rx_prio3_discards", "rx_out_of_buffer", "link_down_events_phy", "tx_packets",
    )] == ["receiver", "receiver", "receiver", "flap", None]  # fmt: skip
