"""Lines about the fabric and the machine itself: RDMA cards, heat, memory, PCIe, clocks."""

from __future__ import annotations

from zombiescope.kernel.log_line import LineFormat

_MLX5 = ("mlx5_core",)

FABRIC_FORMATS = (
    LineFormat(
        "mlx5.refused", "driver_refusal", "info",
        "{where:c}(pid {pid:d}): {command:w}({opcode:x}) op_mod({mod:x}) failed, status {rest:t}",
        "mlx5_core 0000:18:00.0: mlx5_cmd_out_err:838:(pid 4711): ACCESS_REG(0x805) op_mod(0x1) failed, "
        "status bad operation(0x2), syndrome (0x8a2f3b), err(-22)",
        "source", _MLX5,
    ),
    LineFormat(
        "mlx5.module-error", "optic_error", "warning", "Port module event[error]: module {module:d}, {what:t}",
        "mlx5_core 0000:18:00.0: Port module event[error]: module 0, Cable error, High Temperature", "source", _MLX5,
    ),
    LineFormat(
        "mlx5.health", "nic_event", "critical", "{where:c}device's health compromised - reached miss count{rest:t}",
        "mlx5_core 0000:18:00.0: poll_health:825:(pid 0): device's health compromised - reached miss count",
        "unconfirmed", _MLX5, {"reset_reason": "admin_to"},
    ),
    LineFormat(
        "mlx5.slot-power", "nic_power", "info", "{where:c}Detected insufficient power on the PCIe slot ({watts:d}W).",
        "mlx5_core 0000:18:00.0: mlx5_pcie_event:304:(pid 1290): Detected insufficient power on the PCIe slot (27W).",
        "source", _MLX5,
    ),
)  # fmt: skip

HEAT_FORMATS = (
    # From 5.6 on it is printed only where it lasts; before that at the first moment, which healthy machines have.
    LineFormat(
        "cpu.throttled", "cpu_throttled", "warning",
        "CPU{cpu:d}: {where:w} temperature is above threshold, cpu clock is throttled (total events = {events:d})",
        "CPU12: Package temperature is above threshold, cpu clock is throttled (total events = 3)", "source",
    ),
    LineFormat(
        "cpu.throttled.to-5.5", "cpu_throttled", "info",
        "CPU{cpu:d}: {where:w} temperature above threshold, cpu clock throttled (total events = {events:d})",
        "CPU12: Package temperature above threshold, cpu clock throttled (total events = 3)", "source",
    ),
    LineFormat(
        "cpu.throttled.mce", "cpu_throttled", "info",
        "mce: CPU{cpu:d}: {where:w} temperature above threshold, cpu clock throttled (total events = {events:d})",
        "mce: CPU12: Core temperature above threshold, cpu clock throttled (total events = 3)", "unconfirmed",
    ),
    LineFormat(
        "cpu.cool", "cpu_cool", "info", "CPU{cpu:d}: {where:w} temperature/speed normal{rest:t}",
        "CPU12: Core temperature/speed normal", "source",
    ),
    LineFormat(
        "cpu.cool.mce", "cpu_cool", "info", "mce: CPU{cpu:d}: {where:w} temperature/speed normal{rest:t}",
        "mce: CPU12: Package temperature/speed normal", "unconfirmed",
    ),
    LineFormat(
        "cpu.power-limit", "cpu_power_limited", "info",
        "CPU{cpu:d}: {where:w} power limit notification (total events = {events:d})",
        "CPU3: Package power limit notification (total events = 12)", "unconfirmed",
    ),
)  # fmt: skip

HARDWARE_FORMATS = (
    LineFormat(
        "mce.exception", "hardware_error", "critical",
        "mce: [Hardware Error]: CPU {cpu:d}: Machine Check Exception: {mcgstatus:x} Bank {bank:d}: {status:x}",
        "mce: [Hardware Error]: CPU 5: Machine Check Exception: 5 Bank 8: be00000000800400", "unconfirmed",
        also={"type": "UE"},
    ),
    LineFormat(
        "mce.check", "hardware_error", "info",
        "mce: [Hardware Error]: CPU {cpu:d}: Machine Check: {mcgstatus:x} Bank {bank:d}: {status:x}",
        "mce: [Hardware Error]: CPU 5: Machine Check: 0 Bank 8: 8c00004000010093", "unconfirmed",
        also={"type": "CE"},
    ),
    LineFormat(
        "mce.logged", "hardware_error", "info", "mce: [Hardware Error]: Machine check events logged",
        "mce: [Hardware Error]: Machine check events logged", "unconfirmed", also={"type": "CE"},
    ),
    LineFormat(
        "mce", "hardware_error", "info", "mce: [Hardware Error]: {rest:t}",
        "mce: [Hardware Error]: TSC 1a2b3c ADDR 12345680 MISC 140545486", "unconfirmed", loose=True,
    ),
    # AMD prints each machine check with pr_emerg (drivers/edac/mce_amd.c); only the first line says how bad it is.
    LineFormat(
        "amd.corrected", "hardware_error", "info", "[Hardware Error]: Corrected error, no action required.",
        "[Hardware Error]: Corrected error, no action required.", "source", also={"type": "CE"},
    ),
    LineFormat(
        "amd.deferred", "hardware_error", "warning", "[Hardware Error]: Deferred error, no action required.",
        "[Hardware Error]: Deferred error, no action required.", "source", also={"type": "DE"},
    ),
    LineFormat(
        "amd.fatal", "hardware_error", "critical", "[Hardware Error]: System Fatal error.",
        "[Hardware Error]: System Fatal error.", "source", also={"type": "UE"},
    ),
    LineFormat(
        "amd.uncorrected", "hardware_error", "critical", "[Hardware Error]: Uncorrected, software {how:w} error.",
        "[Hardware Error]: Uncorrected, software containable error.", "source", also={"type": "UE"},
    ),
    LineFormat(
        "amd.bank", "hardware_part", "info", "[Hardware Error]: CPU:{cpu:d} ({model:w}) MC{bank:d}_STATUS{rest:t}",
        "[Hardware Error]: CPU:0 (19:1:1) MC18_STATUS[Over|CE|MiscV|AddrV|-|-|SyndV|CECC|-|-|-]: 0xdc2040000000011b",
        "source",
    ),
    LineFormat(
        "amd.part", "hardware_part", "info", "[Hardware Error]: {rest:t}",
        "[Hardware Error]: cache level: L3/GEN, tx: GEN, mem-tx: RD", "source", loose=True,
    ),
    LineFormat(
        "iommu.dmar", "hardware_error", "warning",
        "DMAR: [{access:c}] Request device [{device:w}] {what:c} addr {address:x} [fault reason {rest:t}",
        "DMAR: [DMA Write NO_PASID] Request device [3b:00.0] fault addr 0x7f2a1000 [fault reason 0x05] PTE Write "
        "access is not set",
        "source", also={"type": "IOMMU"},
    ),
    LineFormat(
        "iommu.amd", "hardware_error", "warning", "AMD-Vi: Event logged [IO_PAGE_FAULT {rest:t}",
        "AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:c1:00.0 domain=0x002a address=0xfe000000 flags=0x0020]",
        "source", also={"type": "IOMMU"},
    ),
    LineFormat(
        "iommu.amd.device", "hardware_error", "warning", "AMD-Vi: Event logged [IO_PAGE_FAULT {rest:t}",
        "nvidia 0000:c1:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x002a address=0xfe000000 flags=0x0020]",
        "source", ("*",), also={"type": "IOMMU"},
    ),
    LineFormat(
        "ghes.corrected", "hardware_error", "info", "{{record:d}}[Hardware Error]: event severity: corrected",
        "{1}[Hardware Error]: event severity: corrected", "unconfirmed", also={"type": "CE"},
    ),
    LineFormat(
        "ghes.recoverable", "hardware_error", "critical", "{{record:d}}[Hardware Error]: event severity: recoverable",
        "{1}[Hardware Error]: event severity: recoverable", "unconfirmed", also={"type": "UE"},
    ),
    LineFormat(
        "ghes.fatal", "hardware_error", "critical", "{{record:d}}[Hardware Error]: event severity: fatal",
        "{1}[Hardware Error]: event severity: fatal", "unconfirmed", also={"type": "UE"},
    ),
    LineFormat(
        "ghes.dimm", "hardware_part", "info", "{{record:d}}[Hardware Error]: {indent:c}DIMM location: {part:t}",
        "{1}[Hardware Error]:   DIMM location: CPU1 DIMM_B1", "unconfirmed",
    ),
    LineFormat(
        "ghes", "hardware_part", "info", "{{record:d}}[Hardware Error]: {rest:t}",
        "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 0", "unconfirmed", loose=True,
    ),
    LineFormat(
        "edac.ce", "hardware_error", "info", "EDAC {controller:w}: {count:d} CE {what:c} on {part:c} ({rest:t}",
        "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x4a1)",
        "unconfirmed", also={"type": "CE"},
    ),
    LineFormat(
        "edac.ue", "hardware_error", "critical", "EDAC {controller:w}: {count:d} UE {what:c} on {part:c} ({rest:t}",
        "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x4a1)",
        "unconfirmed", also={"type": "UE"},
    ),
    LineFormat(
        "edac", "hardware_error", "warning", "EDAC {controller:w}: {count:d} {type:w} {rest:t}",
        "EDAC MC0: 2 UE unknown", "unconfirmed", loose=True,
    ),
    LineFormat(
        "memory-failure.killed", "hardware_error", "critical",
        "Memory failure: {page:x}: Sending SIGBUS to {comm:c}:{pid:d} due to hardware memory corruption",
        "Memory failure: 0x4a1fe: Sending SIGBUS to python3:4711 due to hardware memory corruption", "unconfirmed",
        also={"type": "UE"},
    ),
    LineFormat(
        "memory-failure", "hardware_error", "critical",
        "Memory failure: {page:x}: recovery action for {what:c}: {outcome:w}",
        "Memory failure: 0x4a1fe: recovery action for dirty LRU page: Recovered", "source", also={"type": "UE"},
    ),
    LineFormat(
        "aer.corrected", "hardware_error", "info",
        "pcieport {port:w}: AER: {many:c}Corrected error received: {device:w}",
        "pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0", "source", also={"type": "CE"},
    ),
    LineFormat(
        "aer.correctable", "hardware_error", "info",
        "pcieport {port:w}: AER: {many:c}Correctable error message received from {device:w}",
        "pcieport 0000:00:01.0: AER: Multiple Correctable error message received from 0000:01:00.0", "source",
        also={"type": "CE"},
    ),
    LineFormat(
        "aer.uncorrected", "hardware_error", "critical",
        "pcieport {port:w}: AER: {many:c}Uncorrected ({how:c}) error received: {device:w}",
        "pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received: 0000:18:00.0", "source", also={"type": "UE"},
    ),
    LineFormat(
        "aer.uncorrectable", "hardware_error", "critical",
        "pcieport {port:w}: AER: {many:c}Uncorrectable ({how:c}) error message received from {device:w}",
        "pcieport 0000:00:01.0: AER: Uncorrectable (Non-Fatal) error message received from 0000:18:00.0", "source",
        also={"type": "UE"},
    ),
    LineFormat(
        "aer.lost", "hardware_error", "critical", "pcieport {port:w}: AER: device recovery failed",
        "pcieport 0000:00:01.0: AER: device recovery failed", "unconfirmed", also={"type": "UE"},
    ),
    LineFormat(
        "pcie.bus-error", "hardware_part", "info",
        "PCIe Bus Error: severity={error_severity:c}, type={layer:c}, ({agent:c})",
        "nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)", "source", ("*",),
    ),
    LineFormat(
        "pcie.aer", "hardware_part", "info", "pcieport {port:w}: AER: {rest:t}",
        "pcieport 0000:00:01.0: AER: enabled with IRQ 25", "unconfirmed", loose=True,
    ),
)  # fmt: skip

CLOCK_FORMATS = (
    LineFormat(
        "vfs.file-max", "files_limit", "warning", "VFS: file-max limit {limit:d} reached",
        "VFS: file-max limit 9223372 reached", "source",
    ),
    LineFormat(
        "clocksource.unstable.to-4.15", "clocksource_unstable", "warning",
        "clocksource: timekeeping watchdog: Marking clocksource '{clocksource:w}' as unstable {rest:t}",
        "clocksource: timekeeping watchdog: Marking clocksource 'tsc' as unstable because the skew is too large:",
        "unconfirmed",
    ),
    LineFormat(
        "clocksource.unstable.3", "clocksource_unstable", "warning",
        "Clocksource {clocksource:w} unstable (delta = {delta_ns:d} ns)",
        "Clocksource tsc unstable (delta = 62504512 ns)", "unconfirmed",
    ),
    LineFormat(
        "tsc.unstable", "clocksource_unstable", "warning", "tsc: Marking TSC unstable due to {why:t}",
        "tsc: Marking TSC unstable due to clocksource watchdog", "unconfirmed", also={"clocksource": "tsc"},
    ),
    LineFormat(
        "clocksource.switched", "clocksource_switch", "info", "clocksource: Switched to clocksource {clocksource:w}",
        "clocksource: Switched to clocksource hpet", "seen",
    ),
    LineFormat(
        "clocksource.late", "clock_watchdog_late", "info",
        "clocksource: timekeeping watchdog on CPU{cpu:d}: {rest:t}",
        "clocksource: timekeeping watchdog on CPU3: wd-tsc-wd excessive read-back delay of 1234000ns vs. limit",
        "unconfirmed", loose=True,
    ),
)  # fmt: skip
