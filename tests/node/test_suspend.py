"""A machine that is really suspended, to memory, and wakes by its clock: what it slept is a gap of that length."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.booted_node import RECORDING, booted, start_recorder

from zombiescope.lab.node import LabNode, Plan
from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.long]

SLEEP_S = 60
SLEEP = """
modprobe rtc_cmos 2>/dev/null || true
test -e /sys/class/rtc/rtc0/wakealarm
grep -qw mem /sys/power/state
echo 0 > /sys/class/rtc/rtc0/wakealarm
echo +{seconds} > /sys/class/rtc/rtc0/wakealarm
date +%s.%N
echo mem > /sys/power/state
date +%s.%N
"""
BOTH = 'python3 -c "import time; print(time.clock_gettime(7) - time.clock_gettime(1))"'


def test_what_the_machine_slept_is_a_gap(tmp_path: Path) -> None:
    with booted(Plan(cpus=2)) as node:
        start_recorder(node)
        before_s = _slept_s(node)
        began, ended = map(float, node.shell(SLEEP.format(seconds=SLEEP_S), limit_s=300.0).split())
        slept_s = _slept_s(node) - before_s
        node.shell("sleep 5; systemctl stop zombiescope", limit_s=120.0)
        place = node.get(RECORDING, tmp_path)
    assert slept_s > SLEEP_S / 2, "it was not suspended at all"
    with open_recording(place) as opened:
        assert opened.damage == []
        gaps = [gap for gap in opened.gaps() if "suspended" in (gap.why or "")]
        told = [row["text"] for row in opened.table("events").to_pylist() if row["kind"] == "clock_step"]
    [gap] = gaps
    assert (gap.to_us - gap.from_us) / 1e6 == pytest.approx(slept_s, abs=1.0)
    assert began - 3 < gap.from_us / 1e6 < gap.to_us / 1e6 < ended + 3
    assert told == []


def _slept_s(node: LabNode) -> float:
    return float(node.shell(BOTH))
