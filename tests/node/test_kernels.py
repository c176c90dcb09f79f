"""The same recorder on an older and a newer kernel: what moves between kernels is found, not assumed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.booted_node import RECORDING, booted, on_host, start_leaks, start_recorder, steady, stop_leaks, until

from zombiescope.lab.node import LabNode, Plan
from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.node, pytest.mark.long, pytest.mark.slow]

RELEASES = {"bullseye": "5.10.", "trixie": "6.12."}


@dataclass
class Told:
    release: str
    recording: Path
    cgroup_stat: dict[str, int]
    at: float


@pytest.fixture(scope="module", params=sorted(RELEASES))
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    with booted(Plan("v2", request.param)) as node:
        assert node.shell("uname -r").startswith(RELEASES[request.param])
        start_recorder(node)
        start_leaks(node)
        until(node, "test $(systemctl show --property NRestarts --value leaky) -ge 10")
        until(node, "test $(ls /var/tmp/litter-* | wc -l) -ge 10")
        stop_leaks(node)
        counted, at = steady(node, _cgroup_stat)
        node.shell("systemctl stop zombiescope.service", limit_s=120.0)
        out = node.get(RECORDING, tmp_path_factory.mktemp(request.param))
    return Told(RELEASES[request.param], out, counted, at)


def _cgroup_stat(node: LabNode) -> dict[str, int]:
    text = node.shell("cat /sys/fs/cgroup/cgroup.stat")
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}


def test_nothing_is_missing(told: Told) -> None:
    node: dict[str, Any] = json.loads((told.recording / "node=lab/node.json").read_text())
    assert node["kernel"].startswith(told.release)
    assert node["missing"] == []


def test_the_ledger_names_both_leaks_and_the_totals_are_the_kernels(told: Told) -> None:
    document = on_host("cgroups", told.recording, "--to", str(told.at))
    assert document["memory"]["live"] == told.cgroup_stat["nr_descendants"] + 1
    assert document["memory"]["dying"] == told.cgroup_stat["nr_dying_descendants"]
    units = {one["path"]: one["creator"]["unit"] for one in document["leaks"] if one["dying"] >= 8 and one["exact"]}
    assert units == {
        "/system.slice/leaky.service": "leaky.service",
        "/system.slice/litter.service/job-*": "litter.service",
    }


def test_functions_are_named(told: Told) -> None:
    with open_recording(told.recording) as opened:
        frames = opened.table("frames").to_pylist()
    named = {(frame["kind"], frame["name"]) for frame in frames}
    assert ("kernel", "do_syscall_64") in named
    assert ("user", "_PyEval_EvalFrameDefault") in named
