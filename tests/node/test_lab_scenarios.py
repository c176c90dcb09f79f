"""Scenarios on a whole node with cgroup v2 and systemd, and those that would hurt the machine that runs the tests."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.helpers.booted_node import booted

from zombiescope.lab.node import LabNode, Plan

pytestmark = [pytest.mark.node, pytest.mark.long, pytest.mark.slow]


PLACES = "/sys/fs/cgroup /sys/fs/cgroup/system.slice /tmp /dev/shm /run/systemd/system"


@pytest.fixture(scope="module")
def node() -> Iterator[LabNode]:
    with booted(Plan("v2")) as up:
        yield up


@pytest.mark.parametrize(
    "scenario", ["zombie-unit", "oom-loop", "zombie-limit", "cfs-throttle", "rt-starvation", "global-reclaim"]
)
def test_it_is_named_and_leaves_nothing(node: LabNode, scenario: str) -> None:
    done = node.run("zombiescope", "lab", "run", scenario, "--yes", "--json", limit_s=600)
    told = json.loads(done.text)
    assert told["pass"], told
    assert node.shell(f"find {PLACES} -maxdepth 1 -name 'zombiescope-lab-*'") == ""
    assert node.shell("systemctl list-units --all --no-legend 'zombiescope-lab-*'") == ""
