"""`diagnose` of several recordings, of a job and of a pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.cli import Cli
from tests.helpers.made import START_US
from tests.helpers.scenes import Scene

READ = "do_syscall_64 vfs_read"
WALK = f"{READ} memcg_numa_stat_show mem_cgroup_nr_lru_pages"
UID = "5a3c1e77-0b1f-4a5d-9c3e-7f0a6b8d2e11"


def sick(**more: Any) -> Scene:
    scene = Scene(**more).census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent")
    return scene.hog(WALK, "kubelet")


def healthy() -> Scene:
    return Scene().census(240, 30).hog("", "python", share=0.3)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    return sick().write(tmp_path / "a"), healthy().write(tmp_path / "b")


def renamed(place: Path, name: str) -> Path:
    (place / "node=lab").rename(place / f"node={name}")
    return place


def test_several_recordings_are_diagnosed_and_each_incident_says_its_node(cli: Cli, two: tuple[Path, Path]) -> None:
    first, second = renamed(two[0], "node-a"), renamed(two[1], "node-b")
    done = cli("diagnose", str(first), str(second), "--json")
    assert done.code == 0
    found = done.document
    assert found["node"] is None
    assert [one["node"] for one in found["nodes"]] == ["node-a", "node-b"]
    assert {incident["node"] for incident in found["incidents"]} == {"node-a"}
    assert found["incidents"][0]["causes"][0]["pattern"] == "zombie-memcg"


def test_a_directory_of_several_nodes_is_several_recordings(cli: Cli, two: tuple[Path, Path]) -> None:
    first, second = renamed(two[0], "node-a"), renamed(two[1], "node-b")
    (second / "node=node-b").rename(first / "node=node-b")
    assert {one["node"] for one in cli("diagnose", str(first), "--json").document["nodes"]} == {"node-a", "node-b"}
    alone = cli("diagnose", str(first), "--node", "node-b", "--json")
    assert (alone.code, alone.document["node"]) == (0, "node-b")


def test_a_person_sees_every_node(cli: Cli, two: tuple[Path, Path]) -> None:
    first, second = renamed(two[0], "node-a"), renamed(two[1], "node-b")
    said = cli("diagnose", str(first), str(second)).out
    assert "node-a  " in said
    assert "node-b  " in said


def test_a_report_is_of_one_node(cli: Cli, two: tuple[Path, Path], tmp_path: Path) -> None:
    done = cli("diagnose", str(two[0]), str(two[1]), "-o", str(tmp_path / "report.md"))
    assert done.code == 2
    assert "one node" in done.err


# --- a job, a pod ------------------------------------------------------------------------------------------------


def job_failed(scene: Scene, at_s: float = 12) -> Scene:
    return scene.event("ray_job_failed", "Ray job 02000000 failed", at_s, job="02000000")


def test_the_incident_before_a_job_died_is_told(cli: Cli, tmp_path: Path) -> None:
    place = job_failed(sick()).write(tmp_path / "r")
    done = cli("diagnose", str(place), "--ray-job", "02000000", "--json")
    assert done.code == 0
    assert done.document["incidents"][0]["causes"][0]["hog"]["comm"] == "kubelet"


@pytest.mark.parametrize("name", ["03000000", "0200000", "020000001"])
def test_a_job_that_nothing_knows_is_said_in_one_line(cli: Cli, tmp_path: Path, name: str) -> None:
    place = job_failed(sick()).write(tmp_path / "r")
    done = cli("diagnose", str(place), "--ray-job", name)
    assert (done.code, done.out) == (1, "")
    assert f"knows the Ray job {name}" in done.err
    assert len(done.err.strip().splitlines()) <= 2


def test_a_pod_is_known_by_the_tasks_that_an_event_gives_the_uid_of(cli: Cli, tmp_path: Path) -> None:
    """The event names the pod and its uid; tasks know the uid only, as systemd writes it."""
    scene = sick().event("pod_evicted", "pod ml/train-0 was evicted", 13, "info", pod="ml/train-0", uid=UID)
    scene.hog("", "trainer", cpu=1, pid=77, share=0.2, from_s=0, to_s=4, pod=UID.replace("-", "_"))
    place = scene.write(tmp_path / "r")
    said = " ".join(cli("diagnose", str(place), "--pod", "train-0").out.split())
    assert "pod train-0: 1 tasks on 1 cores, 1 events" in said
    assert "kubelet" in said
    assert cli("diagnose", str(place), "--pod", UID, "--json").code == 0


def test_what_happened_elsewhere_at_another_time_is_not_the_pods(cli: Cli, tmp_path: Path) -> None:
    """Its tasks ran on core 3 in the last seconds; kubelet held core 1 long before."""
    scene = sick().hog("", "trainer", cpu=3, pid=77, from_s=18, to_s=20, pod=UID)
    place = scene.write(tmp_path / "r")
    assert cli("diagnose", str(place), "--json").document["incidents"]
    assert cli("diagnose", str(place), "--pod", UID, "--json").document["incidents"] == []


def test_what_was_felt_on_its_core_is_the_pods_even_before_its_time(cli: Cli, tmp_path: Path) -> None:
    scene = sick().hog("", "trainer", cpu=1, pid=77, from_s=18, to_s=20, pod=UID)
    place = scene.write(tmp_path / "r")
    assert cli("diagnose", str(place), "--pod", UID, "--json").document["incidents"]
    assert cli("diagnose", str(place), "--pod", UID, "--ray-job", "1").code == 2


@pytest.mark.parametrize("name", ["train-0", "ml/train-0", "train-*", UID])
def test_a_pod_is_found_by_name_through_its_containers(cli: Cli, tmp_path: Path, name: str) -> None:
    """No event names it; its tasks know their container's id and the pod's uid."""
    scene = sick().hog("", "trainer", cpu=1, pid=77, share=0.2, from_s=4, to_s=9, pod=UID)
    scene.made.container(START_US, "ab" * 32, name="main", pod="train-0", namespace="ml", pod_uid=UID)
    place = scene.write(tmp_path / "r")
    said = " ".join(cli("diagnose", str(place), "--pod", name).out.split())
    assert f"pod {name}: 1 tasks on 1 cores" in said
    assert cli("diagnose", str(place), "--pod", "train-1").code == 1
    assert cli("diagnose", str(place), "--pod", "default/train-0").code == 1
