"""What the counters of RDMA ports mean, name by name: how wide, whether they stick at their maximum or wrap, and what
they say.

Names are those of the files below /sys/class/infiniband/DEV/ports/P: `counters` (the port's PMA, every InfiniBand and
RoCE driver), `hw_counters` (mlx5, EFA, bnxt_re), and of `ethtool -S` for the cards behind them.

Error counters of the PMA have 4, 8 or 16 bits and stand still at their maximum until somebody resets them
(`perfquery -R`): a full one says nothing any more. Firmware counters of mlx5 have 32 bits and start again at 0.
A counter that is not listed here has no known meaning, and nobody judges it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Says = Literal["cable", "flap", "congestion", "peer", "loss", "receiver", "corruption", "driver", "level", "load"]
"""What a counter that rises tells:

cable       bits arrive wrong: the cable, the optic or the port at the other end
flap        the link went down; also when the peer is rebooted
congestion  the fabric had no room for a packet in time
peer        a peer does not answer
loss        packets got lost and were sent again, or came out of order
receiver    this node did not take packets fast enough: look for a starved core
corruption  a packet passed every hop and was wrong all the same
driver      the driver or the card's firmware failed
level       congestion control at work, or packets out of order as adaptive routing sends them: no error
load        work done
"""
TROUBLE: frozenset[Says] = frozenset({"cable", "congestion", "peer", "loss", "receiver", "corruption", "driver"})
"""Those that are errors while they rise. A flap is judged by itself, because a peer's reboot is one too."""

FULL = "RDMA counters at their maximum"
"""The source that is missing while counters stand there."""


class Meaning(NamedTuple):
    says: Says
    bits: int = 64
    sticks: bool = False
    unit: int = 1
    """Its value times this is bytes, or a number."""

    @property
    def full(self) -> int:
        return (1 << self.bits) - 1


def _all(names: str, says: Says, bits: int = 64, *, sticks: bool = False, unit: int = 1) -> dict[str, Meaning]:
    return dict.fromkeys(names.split(), Meaning(says, bits, sticks, unit))


_Q = 32
"""Counters of mlx5 that its firmware keeps for a set of queues."""

PMA: dict[str, Meaning] = {
    **_all("symbol_error port_rcv_errors port_rcv_remote_physical_errors", "cable", 16, sticks=True),
    **_all("link_error_recovery", "cable", 8, sticks=True),
    **_all("local_link_integrity_errors", "cable", 4, sticks=True),
    **_all("excessive_buffer_overrun_errors", "congestion", 4, sticks=True),
    **_all("link_downed", "flap", 8, sticks=True),
    **_all("port_xmit_discards port_rcv_switch_relay_errors VL15_dropped", "congestion", 16, sticks=True),
    **_all("port_xmit_constraint_errors port_rcv_constraint_errors", "driver", 8, sticks=True),
    **_all("port_xmit_wait", "level", 32, sticks=True),
    **_all("port_xmit_data port_rcv_data", "load", 64, unit=4),
    **_all("port_xmit_packets port_rcv_packets", "load"),
}
"""`counters`. Waiting for credit (port_xmit_wait) is what a lossless fabric does instead of dropping: a level. The
kernel answers with the extended counters of 64 bits where the port has them; data and packets are those."""

HARDWARE: dict[str, Meaning] = {
    # mlx5, RoCE and InfiniBand
    **_all("local_ack_timeout_err req_transport_retries_exceeded", "peer", _Q),
    **_all("packet_seq_err implied_nak_seq_err duplicate_request", "loss", _Q),
    **_all("out_of_sequence", "level", _Q),
    **_all("rnr_nak_retry_err out_of_buffer req_rnr_retries_exceeded", "receiver", _Q),
    **_all("roce_adp_retrans roce_adp_retrans_to roce_slow_restart roce_slow_restart_trans", "loss", _Q),
    **_all("roce_slow_restart_cnps", "level", _Q),
    **_all("np_cnp_sent np_ecn_marked_roce_packets rp_cnp_handled", "level"),
    **_all("rp_cnp_ignored", "congestion"),
    **_all("rx_icrc_encapsulated", "corruption"),
    **_all("req_remote_access_errors resp_remote_access_errors resp_local_length_error", "driver", _Q),
    # EFA
    **_all("rx_drops", "receiver"),
    **_all("retrans_pkts", "loss"),
    **_all("retrans_timeout_events unresponsive_remote_events impaired_remote_conn_events", "peer"),
    **_all("rdma_read_wr_err rdma_write_wr_err", "peer"),
    **_all("cmds_err no_completion_cmds mmap_err alloc_pd_err create_qp_err reg_mr_err", "driver"),
    **_all("tx_bytes rx_bytes send_bytes recv_bytes rdma_read_bytes rdma_write_bytes rdma_write_recv_bytes", "load"),
    **_all("rdma_read_resp_bytes retrans_bytes keep_alive_rcvd", "load"),
    # bnxt_re, by memory of its documentation
    **_all("to_retransmits max_retry_exceeded", "peer"),
    **_all("seq_err_naks_rcvd", "loss"),
    **_all("rnr_naks_rcvd", "receiver"),
    **_all("rx_roce_discards", "congestion"),
}
"""`hw_counters`. Flushed completions (*_cqe_flush_error) are left out: a queue that is torn down has them."""

CARD: dict[str, Meaning] = {
    # mlx5
    **_all("rx_discards_phy rx_out_of_buffer", "receiver"),
    **_all("tx_discards_phy tx_pause_storm_error_events", "congestion"),
    **_all("link_down_events_phy", "flap"),
    **_all("rx_crc_errors_phy rx_symbol_err_phy rx_pcs_symbol_err_phy", "cable"),
    **_all("rx_pci_signal_integrity tx_pci_signal_integrity module_bus_stuck module_high_temp", "driver"),
    # ENA
    **_all("missing_tx_cmpl missing_intr lost_interrupt reset_fail", "driver"),
    **_all("suspected_poll_starvation", "receiver"),
    # gve
    **_all("rx_no_buffers_posted rx_queue_drop_cnt", "receiver"),
    **_all("adminq_timeouts reset_cnt", "driver"),
    # bnxt_en, by memory of its source
    **_all("rx_total_discard_pkts missed_irqs", "receiver"),
}
"""`ethtool -S`: device-wide, and by queue with the queue's number before or after the name. rx_err_lane_N_phy is left
out: it counts raw bit errors before FEC, which every PAM4 link (200 and 400 Gb/s) has at all times."""


def port(name: str) -> Meaning | None:
    """Of a file of a port; None where it is not known what it means."""
    return PMA.get(name) or HARDWARE.get(name)


def card(name: str) -> Meaning | None:
    """Of a line of `ethtool -S`, whatever queue it is about."""
    return CARD.get(name) or CARD.get(name.partition("[")[0]) or _priority(name)


def _priority(name: str) -> Meaning | None:
    """rx_prio3_discards: the card's buffer of one priority was full."""
    return Meaning("receiver") if name.startswith("rx_prio") and name.endswith("_discards") else None


def is_rare(source: str, name: str) -> bool:
    """Whether a recorded counter stands still while all is well."""
    if source in ("infiniband", "ethtool"):
        meaning = port(name) if source == "infiniband" else card(name)
        return meaning is not None and meaning.says in TROUBLE | {"flap"}
    return source in ("thermal", "edac") or (source == "ebs" and name.endswith("_us"))
