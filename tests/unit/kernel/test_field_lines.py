"""Lines of machines that the field has: what each is, and that what is ordinary there is no incident."""

from __future__ import annotations

import pytest

from zombiescope.kernel.kmsg import KmsgRecord
from zombiescope.kernel.log_formats import event_of

EMERGENCY = 0
AMD_CORRECTED = """\
[Hardware Error]: Corrected error, no action required.
[Hardware Error]: CPU:0 (19:1:1) MC18_STATUS[Over|CE|MiscV|AddrV|-|-|SyndV|CECC|-|-|-]: 0xdc2040000000011b
[Hardware Error]: Error Addr: 0x000000026ea4a080
[Hardware Error]: PPIN: 0x02b3f4a1c2d3e4f5
[Hardware Error]: IPID: 0x0000009600050f00, Syndrome: 0x4a3a01000a800503
[Hardware Error]: Unified Memory Controller Ext. Error Code: 0
[Hardware Error]: cache level: L3/GEN, tx: GEN, mem-tx: RD
""".splitlines()


def read(text: str, level: int = EMERGENCY) -> tuple[str, str, str | int | None]:
    event = event_of(KmsgRecord(level, 0, 1, 1, text), "kmsg")
    assert event is not None
    return event.kind, event.severity, event.fields.get("type")


@pytest.mark.parametrize("line", AMD_CORRECTED)
def test_a_corrected_error_of_amd_is_no_incident_though_it_is_printed_as_an_emergency(line: str) -> None:
    kind, severity, what = read(line)
    assert kind in ("hardware_error", "hardware_part")
    assert severity == "info"
    assert what in ("CE", None)


@pytest.mark.parametrize(
    "line",
    ["[Hardware Error]: System Fatal error.", "[Hardware Error]: Uncorrected, software restartable error.",
     "[Hardware Error]: Uncorrected, software containable error."],
)  # fmt: skip
def test_an_uncorrected_error_of_amd_is_one(line: str) -> None:
    assert read(line) == ("hardware_error", "critical", "UE")


@pytest.mark.parametrize(
    ("line", "kind", "severity"),
    [
        ("WARNING: kernel/workqueue.c:2234 at __queue_work+0x1a/0x40, CPU#3: kworker/3:1/417",
         "kernel_warning", "warning"),
        ("WARNING: CPU: 3 PID: 1234 at kernel/workqueue.c:2234 __queue_work+0x1a/0x40", "kernel_warning", "warning"),
        ("DMAR: [DMA Read NO_PASID] Request device [18:00.0] fault addr 0x1000 [fault reason 0x06] PTE Read access",
         "hardware_error", "warning"),
        ("nvme 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0011 address=0xfff flags=0x0020]",
         "hardware_error", "warning"),
        ("NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x0000006C) from x",
         "gpu_driver_error", "critical"),
        ("NVRM: nvAssertFailedNoLog: Assertion failed: 0 @ kernel_gsp.c:5041", "gpu_driver_error", "warning"),
        ("amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!", "gpu_driver_error", "critical"),
        ("amdgpu 0000:c1:00.0: amdgpu: GPU reset(2) succeeded!", "gpu_driver_error", "info"),
    ],
)  # fmt: skip
def test_what_other_machines_print_is_known(line: str, kind: str, severity: str) -> None:
    assert read(line, 4)[:2] == (kind, severity)
