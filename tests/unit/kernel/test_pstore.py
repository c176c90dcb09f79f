"""What the kernel printed last before it died, as pstore, systemd-pstore and kdump keep it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zombiescope.kernel import pstore

PANIC = """\
Panic#2 Part1
<4>[ 8123.456789] RIP: 0010:ena_destroy_device+0x1a2/0x2f0 [ena]
<0>[ 8123.457001] Kernel panic - not syncing: Fatal exception in interrupt
"""
OOPS = """\
Oops#1 Part2
<1>[ 8123.400000] BUG: kernel NULL pointer dereference, address: 0000000000000010
"""


def put(root: Path, path: str, text: str, at_s: int = 1_760_000_000) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    os.utime(root / path, (at_s, at_s))


def test_the_parts_of_one_crash_are_one(tmp_path: Path) -> None:
    put(tmp_path, "sys/fs/pstore/dmesg-efi_pstore-170001", PANIC)
    put(tmp_path, "sys/fs/pstore/dmesg-efi_pstore-170002", OOPS, 1_760_000_005)
    put(tmp_path, "sys/fs/pstore/console-ramoops-0", PANIC)
    (one,) = pstore.read(f"{tmp_path}/")
    assert (one.why, one.function) == ("Fatal exception in interrupt", "ena_destroy_device")
    assert one.at_us == 1_760_000_000_000_000


@pytest.mark.parametrize(
    "place", ["var/lib/systemd/pstore/1760000000/dmesg.txt", "var/crash/10.0.0.1-2026/vmcore-dmesg.txt"]
)
def test_what_others_put_away_is_found(tmp_path: Path, place: str) -> None:
    put(tmp_path, place, "[ 8123.4] watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [kubelet:810499]\n")
    (one,) = pstore.read(f"{tmp_path}/")
    assert one.why.startswith("watchdog: BUG: soft lockup - CPU#3")


def test_the_log_of_an_orderly_reboot_is_no_crash(tmp_path: Path) -> None:
    put(tmp_path, "sys/fs/pstore/dmesg-efi_pstore-1", "Shutdown#1 Part1\n<6>[ 99.1] reboot: Restarting system\n")
    assert pstore.read(f"{tmp_path}/") == []
    assert pstore.read(f"{tmp_path}/nowhere/") == []


def test_two_crashes_are_two(tmp_path: Path) -> None:
    put(tmp_path, "sys/fs/pstore/dmesg-erst-1", PANIC)
    put(tmp_path, "sys/fs/pstore/dmesg-erst-2", OOPS, 1_760_900_000)
    assert [one.at_us // 10**6 for one in pstore.read(f"{tmp_path}/")] == [1_760_000_000, 1_760_900_000]


@pytest.mark.parametrize(("minutes", "told"), [(3, True), (300, True), (600, False), (-30, False)])
def test_only_what_ended_the_boot_before_is_told(tmp_path: Path, minutes: int, told: bool) -> None:
    put(tmp_path, "sys/fs/pstore/dmesg-erst-1", PANIC)
    boot_us = (1_760_000_000 + minutes * 60) * 1_000_000
    assert bool(pstore.before_this_boot(boot_us, f"{tmp_path}/")) is told
