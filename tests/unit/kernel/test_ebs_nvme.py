"""Which controllers are EBS volumes, and what their log page says."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tests.unit.recorder.test_hardware import Bench

from zombiescope.kernel import ebs_nvme
from zombiescope.recorder.hardware import REFUSED


def page(magic: int = 0x3C23B510) -> bytes:
    figures = (9, 8, 7, 6, 5, 4, 11_000_000, 22_000_000, 33_000_000, 44_000_000, 12)
    return struct.pack("<I4x11Q", magic, *figures).ljust(4096, b"\0")


def test_the_times_in_which_a_limit_held_it_back() -> None:
    assert ebs_nvme.parse(page()) == {
        "volume_iops_us": 11_000_000, "volume_throughput_us": 22_000_000, "instance_iops_us": 33_000_000,
        "instance_throughput_us": 44_000_000, "queue_length": 12,
    }  # fmt: skip
    assert ebs_nvme.parse(page(0xEC2C0D7E)) is None
    assert ebs_nvme.parse(b"short") is None


def test_the_command_is_get_log_page_of_four_kilobytes() -> None:
    command = ebs_nvme.command(0x1234)
    assert len(command) == 72
    assert command[0] == 0x02
    assert struct.unpack_from("<Q", command, 24)[0] == 0x1234
    assert struct.unpack_from("<II", command, 36) == (4096, 0xD0 | 1023 << 16)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, model in (("nvme0", "Amazon Elastic Block Store      "), ("nvme1", "Amazon EC2 NVMe Instance Storage"),
                        ("nvme-fabrics", "x")):  # fmt: skip
        (tmp_path / "sys/class/nvme" / name).mkdir(parents=True)
        (tmp_path / "sys/class/nvme" / name / "model").write_text(f"{model}\n")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvme0n1").write_bytes(b"")
    return tmp_path


def test_only_volumes_are_asked(tree: Path) -> None:
    assert ebs_nvme.volumes(f"{tree}/") == ("nvme0",)
    with pytest.raises(OSError, match="Inappropriate ioctl"):
        ebs_nvme.read("nvme0", f"{tree}/")


def test_a_volume_that_refuses_is_a_missing_source(tree: Path) -> None:
    bench = Bench(tree)
    try:
        bench.until(lambda: bool(bench.why(REFUSED)))
    finally:
        bench.hardware.close()
    assert "nvme0 is not read any more (log page of EBS:" in bench.why(REFUSED)
