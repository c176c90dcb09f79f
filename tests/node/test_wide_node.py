"""A node of sixteen CPUs, emulated: every core is recorded, and fifteen idle ones cost next to nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.helpers.booted_node import booted

from zombiescope.lab.node import Plan
from zombiescope.query.cores import cores
from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

CPUS = 16
PLACE = "/root/rec"
BUSY_S = 30


def test_every_core_of_a_wide_node_is_recorded_and_the_busy_one_is_seen(tmp_path: Path) -> None:
    with booted(Plan(cpus=CPUS)) as node:
        node.run("systemd-run", "--property=CPUAffinity=11", "sh", "-c", "while :; do :; done").check()
        done = node.run("zombiescope", "record", PLACE, "--for", f"{BUSY_S}s", "--json", limit_s=400.0).check()
        place = node.get(PLACE, tmp_path)
    summary = json.loads(done.text)
    assert summary["lost"] == 0
    with open_recording(place) as opened:
        assert len(opened.node["cpus"]["online"]) == CPUS
        busy = {one.cpu: one.modes.busy or 0.0 for one in cores(opened).cores}
    assert sorted(busy) == list(range(CPUS))
    assert max(busy, key=busy.__getitem__) == 11
