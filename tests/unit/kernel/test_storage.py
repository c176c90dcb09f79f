# ruff: noqa: E101, E501 - the kernel's lines are kept whole
"""Disks, mounts, NFS counts, FUSE connections and blocked tasks, as kernels print them; what is cut off is absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.kernel import blocked_task, diskstats, fuse, mountinfo, mountstats
from zombiescope.kernel.blocked_task import Frame

DISKS = b"""   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 4631458 356932 209702018 21959508 2808718 3316701 455069648 4688872 3 1386472 27359570 2717577 2151 408950016 570037 428046 141151
   8       1 sda1 10 0 80 4 20 0 160 9 1 13 14
   8      16 sdb 1 2 3 x 5 6 7 8 9 10 11
"""
MOUNTS = (
    b"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    b"36 27 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    b"50 36 0:45 / /mnt/with\\040space rw,relatime shared:3 master:4 - nfs4 fs-01:/data rw,vers=4.2,addr=10.0.0.1\n"
    b"51 36 0:52 / /mnt/s3 rw,nosuid - fuse.s3fs s3fs rw,user_id=0\n"
    b"52 36 0:53 / /mnt/s3/below rw - tmpfs tmpfs rw\n"
    b"53 36 0:54 / /mnt/\x1b[31mred rw - fuse.\x07bell x rw\n"
    b"54 36 0:55 / /cut off - nfs"
)
NFS = b"""device rootfs mounted on / with fstype rootfs
device fs-01:/data mounted on /mnt/data with fstype nfs4 statvers=1.1
	opts:	rw,vers=4.2
	age:	100
	per-op statistics
	        NULL: 1 1 0 44 24 0 0 0 0
	        READ: 100 107 2 15000 1048576 5 300 310 0
	       WRITE: 50 50 0 1 1 1 1 1 0

device tmpfs mounted on /tmp with fstype tmpfs
device fs-02:/x mounted on /mnt/x with fstype nfs statvers=1.1
"""
STACK = b"""[<0>] request_wait_answer+0x112/0x210
[<0>] __fuse_simple_request+0x120/0x330 [fuse]
[<ffffffff81234567>] vfs_read+0x23a/0x360
[<0>] 0xffffffffffffffff
"""


def test_what_disks_did_and_have_in_flight() -> None:
    found = diskstats.parse(DISKS)
    assert list(found) == ["vda", "sda1"], "a device that nobody uses and a line that is no line are left out"
    vda = found["vda"]
    assert (vda.device, vda.reads, vda.writes, vda.in_flight) == ("254:0", 4631458, 2808718, 3)
    assert (vda.read_bytes, vda.busy_ms, vda.weighted_ms) == (209702018 * 512, 1386472, 27359570)
    assert vda.completed == 4631458 + 2808718 + 2717577 + 428046
    assert found["sda1"].completed == 30, "before 4.18 there were neither discards nor flushes"


def test_mounts_that_somebody_else_serves() -> None:
    found = mountinfo.parse(MOUNTS)
    assert [mount.family for mount in found] == [None, None, "nfs", "fuse", None, "fuse"]
    assert (found[2].point, found[2].source, found[2].minor) == ("/mnt/with space", "fs-01:/data", 45)
    assert found[5].point == "/mnt/\\x1b[31mred"
    assert found[5].type.isprintable()


@pytest.mark.parametrize(
    ("path", "point"),
    [("/mnt/s3/x", "/mnt/s3"), ("/mnt/s3", "/mnt/s3"), ("/mnt/s3/below/x", "/mnt/s3/below"), ("/mnt/s3x", "/")],
)
def test_the_mount_that_a_path_lies_on(path: str, point: str) -> None:
    mount = mountinfo.covering(mountinfo.parse(MOUNTS), path)
    assert mount is not None
    assert mount.point == point


def test_a_table_of_mounts_is_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_bytes(b"36 27 254:0 / / rw - ext4 /dev/vda rw\n" * 9_000)
    monkeypatch.setattr(mountinfo, "MOST_BYTES", 1)
    found = mountinfo.read(root=str(tmp_path))
    assert found is not None
    assert 0 < len(found) < 9_000


def test_requests_of_nfs_that_were_sent_and_answered() -> None:
    found = mountstats.parse(NFS)
    assert found.keys() == {"/mnt/data", "/mnt/x"}
    assert (found["/mnt/data"].answered, found["/mnt/data"].sent, found["/mnt/data"].timeouts) == (151, 158, 2)


def test_requests_of_fuse_that_wait(tmp_path: Path) -> None:
    for number, text in ((52, "7\n"), (53, "0\n"), (54, "")):
        place = tmp_path / "sys/fs/fuse/connections" / str(number)
        place.mkdir(parents=True)
        (place / "waiting").write_text(text)
    assert fuse.waiting(str(tmp_path)) == {52: 7, 53: 0}
    assert fuse.waiting(str(tmp_path / "nowhere")) == {}


def test_a_kernel_stack_with_its_modules() -> None:
    assert blocked_task.parse_stack(STACK) == (
        Frame("request_wait_answer"), Frame("__fuse_simple_request", "fuse"), Frame("vfs_read"),
    )  # fmt: skip
    assert len(blocked_task.parse_stack(STACK * 100)) == blocked_task.MOST_FRAMES


def test_a_name_that_pretends_to_be_a_state() -> None:
    rest = b"1 1 0 0 -1 4194368 235 0 0 0 0 0 0 0 20 0 1 0 3842757 17735680\n"
    task = blocked_task.parse_state(b"7 (x) D 1 (y) S " + rest)
    assert task is not None
    assert (task.comm, task.state, task.start_ticks) == ("x) D 1 (y", "S", 3842757)
    assert blocked_task.parse_state(b"7 (cut) D 1") is None


@pytest.mark.parametrize(
    ("said", "machine", "expected"),
    [
        (b"17 0x4 0x55d08338d0b0 0x1000 0x2800000 0x0 0x0 0x7fff69f69578 0x7fc3fe5143d3\n", "x86_64", 4),
        (b"257 0xffffff9c 0x7fa0c3a53c00 0x80000 0x0 0x0 0x0 0x7ffe57ae5390 0x7fa0c3d16011\n", "x86_64", None),
        (b"63 0x5 0x1 0x2 0x0 0x0 0x0 0x1 0x1\n", "aarch64", 5),
        (b"0 0xffffffffffffffff 0x0\n", "x86_64", None),
        (b"running\n", "x86_64", None),
        (b"-1 0x7ffe57ae5390 0x7fa0c3d16011\n", "x86_64", None),
        (b"0 0x3\n", "riscv64", None),
        (b"", "x86_64", None),
    ],
)
def test_the_descriptor_that_a_call_works_on(said: bytes, machine: str, expected: int | None) -> None:
    assert blocked_task.parse_syscall(said, machine) == expected
