# ruff: noqa: E501 - the wording of the kernel is kept whole, to be searched for
"""Lines of network drivers: transmit timeouts, resets, and what leads to them.

ENA has worded the same event five ways; the version ranges stand in the names. `phase` of a nic_reset says
the lines of one reset apart: start, done, failed. `reset_reason` names why, in the words of the driver's
own reset reasons.
"""

from __future__ import annotations

from zombiescope.kernel.log_line import LineFormat

_ENA = ("ena",)
_MLX5 = ("mlx5_core",)
_DEV = "ena 0000:20:03.0 eth0: "

ENA_FORMATS = (
    LineFormat(
        "ena.transmit-timeout.to-2.7.1", "nic_tx_timeout", "critical", "Transmit time out",
        _DEV + "Transmit time out", "source", _ENA, {"reset_reason": "os_netdev_wd"},
    ),
    LineFormat(
        "ena.tx-paused.2.7.2-2.11.1", "nic_tx_timeout", "critical",
        "TX q {queue:d} is paused for too long (threshold {threshold_us:d}). "
        "Time since last napi {usec_since_napi:d} usec. napi scheduled: {napi_scheduled:d}",
        _DEV + "TX q 5 is paused for too long (threshold 5000000). Time since last napi 6596000 usec. napi scheduled: 1",
        "source", _ENA, {"reset_reason": "os_netdev_wd"},
    ),
    LineFormat(
        "ena.tx-paused.2.12.0-2.16.1", "nic_tx_timeout", "critical",
        "TX q {queue:d} is paused for too long (threshold {threshold_us:d}). Time since last napi {usec_since_napi:d} "
        "usec. napi scheduled: {napi_scheduled:d}. msecs since last interrupt: {msec_since_interrupt:d}",
        _DEV + "TX q 5 is paused for too long (threshold 5000000). Time since last napi 6596000 usec. "
        "napi scheduled: 1. msecs since last interrupt: 6600",
        "source", _ENA, {"reset_reason": "os_netdev_wd"},
    ),
    LineFormat(
        "ena.tx-paused.2.17.0", "nic_tx_timeout", "critical",
        "TX q {queue:d} is paused for too long (threshold {threshold_us:d}). usecs since napi {usec_since_napi:d}. "
        "napi scheduled: {napi_scheduled:d}. napi CPU: {cpu:d}. msecs since interrupt: {msec_since_interrupt:d}",
        _DEV + "TX q 5 is paused for too long (threshold 5000000). usecs since napi 6596000. napi scheduled: 1. "
        "napi CPU: 39. msecs since interrupt: 6600",
        "source", _ENA, {"reset_reason": "os_netdev_wd"},
    ),
    LineFormat(
        "ena.napi-not-called.2.7.2", "nic_event", "critical",
        "napi handler hasn't been called for a long time but is scheduled",
        _DEV + "napi handler hasn't been called for a long time but is scheduled",
        "source", _ENA, {"reset_reason": "suspected_poll_starvation", "napi_scheduled": 1},
    ),
    LineFormat(
        "ena.missed-completion.to-2.4.1", "nic_event", "warning",
        "Found a Tx that wasn't completed on time, qid {queue:d}, index {index:d}.",
        _DEV + "Found a Tx that wasn't completed on time, qid 7, index 93.", "source", _ENA,
    ),
    LineFormat(
        "ena.missed-completion.2.5.0-2.7.1", "nic_event", "warning",
        "Found a Tx that wasn't completed on time, qid {queue:d}, index {index:d}. {usec_since_napi:d} usecs have "
        "passed since last napi execution. Missing Tx timeout value {timeout_ms:d} msecs",
        _DEV + "Found a Tx that wasn't completed on time, qid 7, index 93. 5012000 usecs have passed since last napi "
        "execution. Missing Tx timeout value 5000 msecs",
        "source", _ENA,
    ),
    LineFormat(
        "ena.missed-completion.2.7.2-2.8.9", "nic_event", "warning",
        "TX hasn't completed, qid {queue:d}, index {index:d}. {usec_since_napi:d} usecs from last napi execution, "
        "napi scheduled: {napi_scheduled:d}",
        _DEV + "TX hasn't completed, qid 7, index 93. 5012000 usecs from last napi execution, napi scheduled: 1",
        "source", _ENA,
    ),
    LineFormat(
        "ena.missed-completion.2.9.0-2.16.1", "nic_event", "warning",
        "TX hasn't completed, qid {queue:d}, index {index:d}. {msec_since_interrupt:d} msecs since last interrupt, "
        "{msec_since_napi:d} msecs since last napi execution, napi scheduled: {napi_scheduled:d}",
        _DEV + "TX hasn't completed, qid 7, index 93. 5020 msecs since last interrupt, 5012 msecs since last napi "
        "execution, napi scheduled: 1",
        "source", _ENA,
    ),
    LineFormat(
        "ena.missed-completion.2.17.0", "nic_event", "warning",
        "[1/2] {missed:d} new missed TX completions, qid: {queue:d}, {msec_since_interrupt:d} msecs since interrupt, "
        "{msec_since_napi:d} msecs since napi, napi scheduled: {napi_scheduled:d}",
        _DEV + "[1/2] 12 new missed TX completions, qid: 7, 5020 msecs since interrupt, 5012 msecs since napi, "
        "napi scheduled: 1",
        "source", _ENA,
    ),
    LineFormat(
        "ena.missed-completion-cpu.2.17.0", "nic_event", "warning",
        "[2/2] qid: {queue:d}, highest TX completion pending time (msec): {pending_ms:d}, "
        "napi sched changes: {napi_sched_changes:d}, napi CPU: {cpu:d}",
        _DEV + "[2/2] qid: 7, highest TX completion pending time (msec): 5300, napi sched changes: 2, napi CPU: 39",
        "source", _ENA,
    ),
    LineFormat(
        "ena.lost-completions.1.2.0-2.7.1", "nic_event", "critical",
        "The number of lost tx completions is above the threshold ({lost:d} > {threshold:d}). Reset the device",
        _DEV + "The number of lost tx completions is above the threshold (129 > 128). Reset the device",
        "source", _ENA, {"reset_reason": "miss_tx_cmpl"},
    ),
    LineFormat(
        "ena.lost-completions.2.7.2-2.8.9", "nic_event", "critical",
        "Lost TX completions are above the threshold ({lost:d} > {threshold:d}). "
        "Completion transmission timeout: {timeout_ms:d}.",
        _DEV + "Lost TX completions are above the threshold (129 > 128). Completion transmission timeout: 5000.",
        "source", _ENA, {"reset_reason": "miss_tx_cmpl"},
    ),
    LineFormat(
        "ena.lost-completions.2.9.0-2.15.0", "nic_event", "critical",
        "Lost TX completions are above the threshold ({lost:d} > {threshold:d}). Completion transmission timeout: "
        "{timeout_ms:d} (msec). {msec_since_interrupt:d} msecs since last interrupt, {msec_since_napi:d} msecs since "
        "last napi execution.",
        _DEV + "Lost TX completions are above the threshold (129 > 128). Completion transmission timeout: 5000 (msec). "
        "5020 msecs since last interrupt, 5012 msecs since last napi execution.",
        "source", _ENA, {"reset_reason": "miss_tx_cmpl"},
    ),
    LineFormat(
        "ena.lost-completions.2.16", "nic_event", "critical",
        "Lost TX completions are above the threshold ({lost:d} > {threshold:d}). Completion transmission timeout: "
        "{timeout_ms:d} (msec). {msec_since_interrupt:d} msecs since last interrupt, {msec_since_napi:d} msecs since "
        "last napi execution. qid {queue:d}.",
        _DEV + "Lost TX completions are above the threshold (129 > 128). Completion transmission timeout: 5000 (msec). "
        "5020 msecs since last interrupt, 5012 msecs since last napi execution. qid 7.",
        "source", _ENA, {"reset_reason": "miss_tx_cmpl"},
    ),
    LineFormat(
        "ena.lost-completions.2.17.0", "nic_event", "critical",
        "[1/2] Lost TX completions are above threshold ({lost:d} > {threshold:d}), completion timeout: {timeout_ms:d} "
        "(msec), {msec_since_interrupt:d} msecs since interrupt, {msec_since_napi:d} msecs since napi, qid: {queue:d}",
        _DEV + "[1/2] Lost TX completions are above threshold (129 > 128), completion timeout: 5000 (msec), "
        "5020 msecs since interrupt, 5012 msecs since napi, qid: 7",
        "source", _ENA, {"reset_reason": "miss_tx_cmpl"},
    ),
    # 2.17.0 passes the two arguments of this line in the wrong order: what it prints after "qid:" is the CPU.
    # The queue is taken from [1/2] by whoever joins the two lines.
    LineFormat(
        "ena.lost-completions-cpu.2.17.0", "nic_event", "warning",
        "[2/2] qid: {cpu:d}, napi CPU: {queue:d}",
        _DEV + "[2/2] qid: 39, napi CPU: 7", "source", _ENA, {"arguments_swapped_by_driver": 1},
    ),
    LineFormat(
        "ena.resetting.2.17.0", "nic_reset", "critical", "Resetting the device",
        _DEV + "Resetting the device", "source", _ENA, {"phase": "start"},
    ),
    LineFormat(
        "ena.keep-alive.to-2.11.1", "nic_event", "critical", "Keep alive watchdog timeout.",
        _DEV + "Keep alive watchdog timeout.", "source", _ENA, {"reset_reason": "keep_alive_to"},
    ),
    LineFormat(
        "ena.keep-alive.2.12.0", "nic_event", "critical",
        "Keep alive watchdog timeout, {msec_since_keep_alive:d} msecs since last keep alive.",
        _DEV + "Keep alive watchdog timeout, 6004 msecs since last keep alive.",
        "source", _ENA, {"reset_reason": "keep_alive_to"},
    ),
    LineFormat(
        "ena.admin-queue", "nic_event", "critical", "ENA admin queue is not in running state!",
        _DEV + "ENA admin queue is not in running state!", "source", _ENA, {"reset_reason": "admin_to"},
    ),
    LineFormat(
        "ena.msix.1.5.0-2.15", "nic_event", "critical",
        "Potential MSIX issue on {side:w} side Queue = {queue:d}. Reset the device",
        _DEV + "Potential MSIX issue on Rx side Queue = 3. Reset the device",
        "source", _ENA, {"reset_reason": "miss_interrupt"},
    ),
    LineFormat(
        "ena.msix.2.16", "nic_event", "critical", "Potential MSIX issue on {side:w} side Queue = {queue:d}",
        _DEV + "Potential MSIX issue on Tx side Queue = 3", "source", _ENA, {"reset_reason": "miss_interrupt"},
    ),
    LineFormat(
        "ena.device-request", "nic_event", "critical",
        "The device has detected an unhealthy state, reset is requested",
        _DEV + "The device has detected an unhealthy state, reset is requested",
        "source", _ENA, {"reset_reason": "device_request"},
    ),
    LineFormat(
        "ena.trigger-reset", "nic_reset", "critical", "Trigger reset is on",
        _DEV + "Trigger reset is on", "source", _ENA, {"phase": "start"},
    ),
    LineFormat(
        "ena.freed.2.2-2.14", "nic_event", "info", "Free uncompleted tx skb qid {queue:d} {rest:t}",
        _DEV + "Free uncompleted tx skb qid 7 idx 0x5d", "source", _ENA,
    ),
    LineFormat(
        "ena.freed.2.15", "nic_event", "info",
        "Freed {freed:d} uncompleted tx {unit:c}, qid {queue:d}, longest msecs since submission {pending_ms:d}",
        _DEV + "Freed 12 uncompleted tx skbs, qid 7, longest msecs since submission 5300", "source", _ENA,
    ),
    LineFormat(
        "ena.reset-done.to-1.6", "nic_reset", "critical", "Device reset completed successfully",
        "ena 0000:20:03.0: Device reset completed successfully", "source", _ENA, {"phase": "done"},
    ),
    LineFormat(
        "ena.reset-done.2.0.2-2.13.0", "nic_reset", "critical",
        "Device reset completed successfully, Driver info: {driver_info:t}",
        "ena 0000:20:03.0: Device reset completed successfully, Driver info: Elastic Network Adapter (ENA) v2.11.0g",
        "source", _ENA, {"phase": "done"},
    ),
    LineFormat(
        "ena.reset-done.2.13.1", "nic_reset", "critical",
        "Device reset completed, status: {status:d}, Driver info: {driver_info:t}",
        "ena 0000:20:03.0: Device reset completed, status: 0, Driver info: Elastic Network Adapter (ENA) v2.17.0g",
        "source", _ENA, {"phase": "done"},
    ),
    LineFormat(
        "ena.reset-failed", "nic_reset", "critical", "Reset attempt failed. Can not reset the device",
        "ena 0000:20:03.0: Reset attempt failed. Can not reset the device", "source", _ENA, {"phase": "failed"},
    ),
    LineFormat(
        "ena.restore-failed", "nic_reset", "critical", "Restore attempt failed.{rest:t}",
        "ena 0000:20:03.0: Restore attempt failed.", "source", _ENA, {"phase": "failed"},
    ),
    LineFormat(
        "ena.tx-paused.other", "nic_tx_timeout", "critical", "TX q {queue:d} is paused{rest:t}",
        _DEV + "TX q 5 is paused since 6596000 usec", "unconfirmed", _ENA, {"reset_reason": "os_netdev_wd"}, loose=True,
    ),
    LineFormat(
        "ena.reset-done.other", "nic_reset", "critical", "Device reset completed{rest:t}",
        _DEV + "Device reset completed after 3 ms", "unconfirmed", _ENA, {"phase": "done"}, loose=True,
    ),
)  # fmt: skip

DRIVER_FORMATS = (
    LineFormat(
        "netdev-watchdog.once", "nic_tx_timeout", "critical",
        "NETDEV WATCHDOG: {interface:w} ({driver:c}): transmit queue {queue:d} timed out",
        "NETDEV WATCHDOG: eth0 (ixgbe): transmit queue 3 timed out", "source",
    ),
    LineFormat(
        "netdev-watchdog.once-ms", "nic_tx_timeout", "critical",
        "NETDEV WATCHDOG: {interface:w} ({driver:c}): transmit queue {queue:d} timed out {timeout_ms:d} ms",
        "NETDEV WATCHDOG: eth0 (ixgbe): transmit queue 3 timed out 5123 ms", "source",
    ),
    # Since kernel 6.5 it is printed each time, not once per boot, and names the CPU.
    LineFormat(
        "netdev-watchdog.each", "nic_tx_timeout", "critical",
        "NETDEV WATCHDOG: CPU: {cpu:d}: transmit queue {queue:d} timed out {timeout_ms:d} ms",
        "bnxt_en 0000:04:00.0 eth0: NETDEV WATCHDOG: CPU: 2: transmit queue 1 timed out 5123 ms", "source", ("*",),
    ),
    LineFormat(
        "mlx5.tx-timeout", "nic_tx_timeout", "critical", "TX timeout detected",
        "mlx5_core 0000:03:00.0 ens1f0: TX timeout detected", "source", _MLX5,
    ),
    LineFormat(
        "mlx5.tx-timeout-queue", "nic_tx_timeout", "critical",
        "TX timeout on queue: {queue:d}, SQ: {sq:x}, CQ: {cq:x}, SQ Cons: {consumer:x} SQ Prod: {producer:x}, "
        "usecs since last trans: {usec_since_transmit:d}",
        "mlx5_core 0000:03:00.0 ens1f0: TX timeout on queue: 7, SQ: 0x10f8, CQ: 0x4a1, SQ Cons: 0x2f SQ Prod: 0x31, "
        "usecs since last trans: 17384000",
        "source", _MLX5,
    ),
    LineFormat(
        "mlx5.tx-timeout-queue-old", "nic_tx_timeout", "critical",
        "TX timeout on queue: {queue:d}, SQ: {sq:x}, CQ: {cq:x}, SQ Cons: {consumer:x} SQ Prod: {producer:x}",
        "mlx5_core 0000:03:00.0 ens1f0: TX timeout on queue: 7, SQ: 0x10f8, CQ: 0x4a1, SQ Cons: 0x2f SQ Prod: 0x31",
        "unconfirmed", _MLX5,
    ),
    LineFormat(
        "mlx4.tx-timeout-queue", "nic_tx_timeout", "critical",
        "mlx4_en: {interface:w}: TX timeout on queue: {queue:d}, QP: {qp:x}, CQ: {cq:x}, Cons: {consumer:x}, "
        "Prod: {producer:x}",
        "mlx4_en: eth0: TX timeout on queue: 3, QP: 0x248, CQ: 0x84, Cons: 0xffffffff, Prod: 0x1f", "source",
    ),
    LineFormat(
        "virtio.tx-timeout", "nic_tx_timeout", "critical",
        "TX timeout on queue: {queue:d}, sq: {sq:c}, vq: {vq:x}, name: {vq_name:c}, {usec_since_transmit:d} usecs ago",
        "virtio_net virtio0 eth0: TX timeout on queue: 0, sq: output.0, vq: 0x1, name: output.0, 5120000 usecs ago",
        "source", ("virtio_net",),
    ),
    LineFormat(
        "bnxt.tx-timeout", "nic_tx_timeout", "critical", "TX timeout detected, starting reset task!",
        "bnxt_en 0000:45:00.0 eth0: TX timeout detected, starting reset task!", "source", ("bnxt_en",),
    ),
    LineFormat(
        "gve.tx-timeout", "nic_tx_timeout", "critical", "Timeout on tx queue, {queue:d}",
        "gve 0000:00:04.0 eth0: Timeout on tx queue, 3", "source", ("gve",),
    ),
    LineFormat(
        "gve.kick", "nic_event", "warning", "Kicking queue {queue:d}",
        "gve 0000:00:04.0 eth0: Kicking queue 3", "source", ("gve",),
    ),
    LineFormat(
        "gve.reset-requested", "nic_event", "critical", "Device requested reset.",
        "gve 0000:00:04.0: Device requested reset.", "source", ("gve",), {"reset_reason": "device_request"},
    ),
    LineFormat(
        "gve.reset", "nic_reset", "critical", "Performing reset",
        "gve 0000:00:04.0: Performing reset", "source", ("gve",), {"phase": "start"},
    ),
    LineFormat(
        "gve.reset-failed", "nic_reset", "critical", "Reset failed! {rest:t}",
        "gve 0000:00:04.0: Reset failed! !!! DISABLING ALL QUEUES !!!", "source", ("gve",), {"phase": "failed"},
    ),
    LineFormat(
        "ixgbe.tx-hang", "nic_tx_timeout", "critical",
        "tx hang {hang_count:d} detected on queue {queue:d}, resetting adapter",
        "ixgbe 0000:01:00.1 ens1f1: tx hang 19 detected on queue 4, resetting adapter", "source", ("ixgbe",),
    ),
    LineFormat(
        "ixgbe.tx-timeout", "nic_tx_timeout", "critical", "initiating reset due to tx timeout",
        "ixgbe 0000:01:00.1 ens1f1: initiating reset due to tx timeout", "source", ("ixgbe",),
    ),
    LineFormat(
        "ixgbe.reset", "nic_reset", "critical", "Reset adapter",
        "ixgbe 0000:01:00.1 ens1f1: Reset adapter", "seen", ("ixgbe",), {"phase": "start"},
    ),
    LineFormat(
        "intel.tx-unit-hang", "nic_tx_timeout", "critical", "Detected Tx Unit Hang{rest:t}",
        "igb 0000:02:00.0 eno1: Detected Tx Unit Hang", "seen", ("ixgbe", "igb", "igc", "e1000"),
    ),
    LineFormat(
        "e1000e.hardware-unit-hang", "nic_tx_timeout", "critical", "Detected Hardware Unit Hang:{rest:t}",
        "e1000e 0000:00:1f.6 eno1: Detected Hardware Unit Hang:\n  TDH                  <a1>", "source", ("e1000e",),
    ),
    LineFormat(
        "e1000e.reset", "nic_reset", "critical", "Reset adapter unexpectedly",
        "e1000e 0000:00:1f.6 eno1: Reset adapter unexpectedly", "seen", ("e1000e",), {"phase": "start"},
    ),
    LineFormat(
        "i40e.tx-timeout", "nic_tx_timeout", "critical",
        "tx_timeout: VSI_seid: {vsi:d}, Q {queue:d}, NTC: {rest:t}",
        "i40e 0000:5e:00.0 ens2f0: tx_timeout: VSI_seid: 390, Q 12, NTC: 0x1b, HWB: 0x1b, NTU: 0x1d, TAIL: 0x1d, "
        "INT: 0x0",
        "source", ("i40e",),
    ),
    LineFormat(
        "ice.tx-timeout", "nic_tx_timeout", "critical",
        "tx_timeout: VSI_num: {vsi:d}, Q {queue:d}, NTC: {rest:t}",
        "ice 0000:17:00.0 ens1f0: tx_timeout: VSI_num: 8, Q 12, NTC: 0x1b, HW_HEAD: 0x1b, NTU: 0x1d, INT: 0x0",
        "source", ("ice",),
    ),
    LineFormat(
        "intel.tx-timeout-recovery", "nic_reset", "critical",
        "tx_timeout recovery level {level:d}, {rest:t}",
        "i40e 0000:5e:00.0 ens2f0: tx_timeout recovery level 1, hung_queue 12", "source", ("i40e", "ice"),
        {"phase": "start"},
    ),
    LineFormat(
        "tg3.tx-timeout", "nic_tx_timeout", "critical", "transmit timed out, resetting",
        "tg3 0000:02:00.0 eth0: transmit timed out, resetting", "source", ("tg3",),
    ),
    LineFormat(
        "r8169.tx-timeout", "nic_event", "warning", "ASPM disabled on Tx timeout",
        "r8169 0000:03:00.0 eth0: ASPM disabled on Tx timeout", "unconfirmed", ("r8169",),
    ),
    LineFormat(
        "netvsc.path", "nic_event", "info", "Data path switched {direction:w} VF: {vf:w}",
        "hv_netvsc 000d3a5e-e13b-000d-3a5e-e13b000d3a5e eth0: Data path switched from VF: enP1s1",
        "source", ("hv_netvsc",),
    ),
    LineFormat(
        "link.nic-down", "link_down", "warning", "NIC Link is Down",
        "ixgbe 0000:01:00.1 ens1f1: NIC Link is Down", "seen", ("*",),
    ),
    LineFormat(
        "link.nic-up", "link_up", "info", "NIC Link is Up{rest:t}",
        "ixgbe 0000:01:00.1 ens1f1: NIC Link is Up 10 Gbps, Flow Control: RX/TX", "seen", ("*",),
    ),
    LineFormat(
        "link.intel-old-down", "link_down", "warning", "{driver:w}: {interface:w} NIC Link is Down",
        "e1000e: eno1 NIC Link is Down", "seen",
    ),
    LineFormat(
        "link.intel-old-up", "link_up", "info", "{driver:w}: {interface:w} NIC Link is Up {rest:t}",
        "e1000e: enp0s31f6 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: Rx/Tx", "seen",
    ),
    LineFormat(
        "link.phy-down", "link_down", "warning", "Link is Down",
        "r8169 0000:03:00.0 eth0: Link is Down", "unconfirmed", ("*",),
    ),
    LineFormat(
        "link.phy-up", "link_up", "info", "Link is Up - {rest:t}",
        "r8169 0000:03:00.0 eth0: Link is Up - 1Gbps/Full - flow control rx/tx", "unconfirmed", ("*",),
    ),
    LineFormat(
        "link.mlx5-down", "link_down", "warning", "Link down",
        "mlx5_core 0000:03:00.0 ens1f0: Link down", "unconfirmed", _MLX5,
    ),
    LineFormat(
        "link.mlx5-up", "link_up", "info", "Link up",
        "mlx5_core 0000:03:00.0 ens1f0: Link up", "unconfirmed", _MLX5,
    ),
    LineFormat(
        "bond.down", "link_down", "warning", "{bond:w}: (slave {interface:w}): link status definitely down{rest:t}",
        "bond0: (slave enp1s0f1): link status definitely down, disabling slave", "seen",
    ),
)  # fmt: skip
