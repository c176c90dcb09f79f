"""Trees of /sys/class/infiniband as drivers show them: mlx5 on InfiniBand and on RoCE, EFA, and a port without PMA.

Names and order of the files are those of the drivers; the figures are a test's own.
"""

from __future__ import annotations

from pathlib import Path

PMA = (
    "VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors "
    "multicast_rcv_packets multicast_xmit_packets port_rcv_constraint_errors port_rcv_data port_rcv_errors "
    "port_rcv_packets port_rcv_remote_physical_errors port_rcv_switch_relay_errors port_xmit_constraint_errors "
    "port_xmit_data port_xmit_discards port_xmit_packets port_xmit_wait symbol_error unicast_rcv_packets "
    "unicast_xmit_packets"
)
MLX5_IB = (
    "duplicate_request implied_nak_seq_err lifespan local_ack_timeout_err out_of_buffer out_of_sequence packet_seq_err "
    "req_cqe_error req_cqe_flush_error req_remote_access_errors req_remote_invalid_request resp_cqe_error "
    "resp_cqe_flush_error resp_local_length_error resp_remote_access_errors rnr_nak_retry_err "
    "rx_atomic_requests rx_dct_connect rx_read_requests rx_write_requests"
)
MLX5_ROCE = (
    f"{MLX5_IB} np_cnp_sent np_ecn_marked_roce_packets roce_adp_retrans roce_adp_retrans_to roce_slow_restart "
    "roce_slow_restart_cnps roce_slow_restart_trans rp_cnp_handled rp_cnp_ignored rx_icrc_encapsulated"
)
EFA_PORT = (
    "lifespan rdma_read_bytes rdma_read_resp_bytes rdma_read_wr_err rdma_read_wrs rdma_write_bytes "
    "rdma_write_recv_bytes rdma_write_wr_err rdma_write_wrs recv_bytes recv_wrs retrans_bytes retrans_pkts "
    "retrans_timeout_events rx_bytes rx_drops rx_pkts send_bytes send_wrs tx_bytes tx_pkts unresponsive_remote_events "
    "impaired_remote_conn_events"
)
EFA_DEVICE = (
    "alloc_pd_err alloc_ucontext_err cmds_err completed_cmds create_ah_err create_cq_err create_qp_err keep_alive_rcvd "
    "lifespan mmap_err no_completion_cmds reg_mr_err submitted_cmds"
)


def write(root: Path, path: str, text: str | int) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")


def port(
    root: Path, device: str, *, pma: str = "", hw: str = "", layer: str = "InfiniBand", state: str = "4: ACTIVE",
    rate: str = "400 Gb/sec (4X NDR)", bus: str = "0000:18:00.0", number: int = 1, **figures: int | str,
) -> Path:  # fmt: skip
    """A port with these files, each 0 but those that are given."""
    base = f"sys/class/infiniband/{device}"
    for name, text in (("state", state), ("rate", rate), ("link_layer", layer)):
        write(root, f"{base}/ports/{number}/{name}", text)
    for folder, names in (("counters", pma), ("hw_counters", hw)):
        for name in names.split():
            write(root, f"{base}/ports/{number}/{folder}/{name}", figures.get(name, 10 if name == "lifespan" else 0))
    device_link = root / base / "device"
    if not device_link.is_symlink():
        device_link.symlink_to(f"../../../{bus}")
    return root / base / "ports" / str(number)


def mlx5_ib(root: Path, device: str = "mlx5_0", **figures: int | str) -> Path:
    return port(root, device, pma=PMA, hw=MLX5_IB, **figures)  # type: ignore[arg-type]


def mlx5_roce(root: Path, device: str = "mlx5_0", **figures: int | str) -> Path:
    return port(root, device, pma=PMA, hw=MLX5_ROCE, layer="Ethernet", **figures)  # type: ignore[arg-type]


def efa(root: Path, device: str = "rdmap0s31", **figures: int | str) -> Path:
    made = port(root, device, hw=EFA_PORT, layer="Unspecified", rate="100 Gb/sec (4X EDR)", **figures)  # type: ignore[arg-type]
    for name in EFA_DEVICE.split():
        write(root, f"sys/class/infiniband/{device}/hw_counters/{name}", figures.get(name, 0))
    return made


def throttling(root: Path, cpus: int, *, per_core: int = 2, packages: int = 2, **figures: int) -> None:
    """thermal_throttle of every CPU; both threads of a core show its numbers."""
    cores = cpus // per_core
    for cpu in range(cpus):
        core = cpu % cores
        package = core * packages // cores
        base = f"sys/devices/system/cpu/cpu{cpu}"
        write(root, f"{base}/topology/physical_package_id", package)
        write(root, f"{base}/topology/core_id", core)
        for name, value in figures.items():
            write(root, f"{base}/thermal_throttle/{name}", value)
