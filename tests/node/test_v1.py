"""The same on cgroup v1, chosen by a kernel option: what is counted in /proc/cgroups, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.booted_node import RECORDING, booted, on_host, start_leaks, start_recorder, steady, stop_leaks, until

from zombiescope.lab.node import LabNode, Plan

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.long]


@dataclass
class Told:
    recording: Path
    total: int
    directories: int
    at: float
    restarts: int


@pytest.fixture(scope="module")
def node() -> Iterator[LabNode]:
    with booted(Plan("v1")) as made:
        yield made


@pytest.fixture(scope="module")
def told(node: LabNode, tmp_path_factory: pytest.TempPathFactory) -> Told:
    start_recorder(node)
    start_leaks(node)
    until(node, "test $(systemctl show --property NRestarts --value leaky) -ge 15")
    until(node, "test $(ls /var/tmp/litter-* | wc -l) -ge 15")
    restarts = int(node.shell("systemctl show --property NRestarts --value leaky"))
    stop_leaks(node)
    (total, directories), at = steady(node, _counted)
    node.shell("systemctl stop zombiescope.service", limit_s=120.0)
    recording = node.get(RECORDING, tmp_path_factory.mktemp("out"))
    return Told(recording, total, directories, at, restarts)


def _counted(node: LabNode) -> tuple[int, int]:
    total = node.shell("awk '$1 == \"memory\" {print $3}' /proc/cgroups")
    directories = node.shell("find /sys/fs/cgroup/memory -type d | wc -l")
    return int(total), int(directories)


@pytest.fixture(scope="module")
def document(told: Told) -> dict[str, Any]:
    return on_host("cgroups", told.recording, "--to", str(told.at))


def test_the_memory_controller_is_on_v1(node: LabNode) -> None:
    assert node.shell("stat --file-system --format %T /sys/fs/cgroup/memory").strip() == "cgroupfs"
    assert node.shell("systemctl is-system-running").strip() == "running"


def test_the_census_is_the_kernels_own(told: Told, document: dict[str, Any]) -> None:
    memory = document["memory"]
    assert memory["hierarchy"] == "v1"
    assert memory["total"] == told.total
    assert memory["live"] == told.directories
    assert memory["dying"] == told.total - told.directories


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("/system.slice/leaky.service", "leaky.service"),
        ("/system.slice/litter.service/job-*", "litter.service"),
    ],
)
def test_leaks_are_attributed(document: dict[str, Any], path: str, unit: str) -> None:
    (found,) = [one for one in document["leaks"] if one["path"] == path]
    assert found["exact"]
    assert found["creator"]["unit"] == unit
    assert found["dying"] >= 10


def test_restarts_come_over_the_bus(told: Told) -> None:
    found = on_host("events", told.recording, "--kind", "unit_restart")["events"]
    assert sum(one["fields"]["delta"] for one in found if one["fields"]["unit"] == "leaky.service") >= told.restarts


def test_nothing_is_missing(told: Told) -> None:
    assert not [gap for gap in on_host("info", told.recording)["gaps"] if gap["source"] == "stack samples"]
