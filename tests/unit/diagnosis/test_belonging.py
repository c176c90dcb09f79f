"""A chain holds what belongs together, on nodes of any size: who was there, in those seconds, and can have done it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import SYSCALL, Scene

from zombiescope.diagnosis.incident import Incident

CALL = " ".join(SYSCALL)
WALK = f"{CALL} vfs_read seq_read memcg_numa_stat_show mem_cgroup_nr_lru_pages"
UNPACK = f"{CALL} ksys_write vfs_write ext4_file_write_iter copy_page_from_iter"
SIZES = pytest.mark.parametrize("cpus", [2, 16, 192])


def storm(scene: Scene, lanes: int = 1) -> Scene:
    """Processes that live for a third of a second, two cores for each lane in turn."""
    scene.counter("stat", "processes", 1_000)
    for number in range(20 * lanes):
        at_s, lane = 5 + number // lanes * 0.3, number % lanes
        scene.hog(f"{CALL} kernel_clone copy_process dup_mmap copy_page_range", "sh", pid=5000 + number, ppid=700,
                  cpu=2 * lane + number // lanes % 2, from_s=at_s, to_s=at_s + 0.3)  # fmt: skip
    return scene.hog("", "bash", pid=700, cpu=0, share=0.05)


def with_pattern(found: tuple[Incident, ...], pattern: str) -> Incident:
    (one,) = [incident for incident in found if incident.causes[0].pattern == pattern]
    return one


def said(incident: Incident) -> str:
    return " | ".join(link.fact for link in incident.causes[0].chain)


@pytest.mark.parametrize(("cpus", "lanes"), [(16, 1), (192, 5)])
def test_a_core_that_another_program_held_is_no_symptom_of_a_storm(cpus: int, lanes: int, tmp_path: Path) -> None:
    # GIVEN a storm on some cores, and dpkg alone on another in the same seconds
    scene = storm(Scene(cpus=cpus), lanes).hog(UNPACK, "dpkg", cpu=12, pid=900)
    incident = with_pattern(scene.diagnose(tmp_path).incidents, "fork-storm")
    assert "core 12" not in said(incident)
    assert {symptom.cpu for symptom in incident.symptoms} <= {None, *range(2 * lanes)}


@SIZES
def test_who_had_the_core_before_is_no_part_of_it(cpus: int, tmp_path: Path) -> None:
    # GIVEN kubelet on core 1, and three seconds later dpkg on the same core
    scene = Scene(cpus=cpus).vmstat().census(240, 68_440).leak("/ecs/*", 68_000, 500, 500, "ecs-agent")
    scene.hog(WALK, "kubelet", from_s=3, to_s=9).hog(UNPACK, "dpkg", from_s=12, to_s=16, pid=900)
    found = scene.diagnose(tmp_path).incidents
    zombies = with_pattern(found, "zombie-memcg")
    assert zombies.to_us <= START_US + 10 * SECOND
    assert "dpkg" not in said(zombies)
    # AND a hog whose core was lost is one incident with it
    assert {symptom.kind for symptom in zombies.symptoms} == {"core_saturated", "kernel_hog"}


@pytest.mark.parametrize(
    ("kind", "text", "fields"),
    [
        ("io_error", "I/O error, dev nvme1n1, sector 2048", {"device": "nvme1n1"}),
        ("kernel_warning", "WARNING: CPU: 0 PID: 7 at fs/nowhere.c:1", {"cpu": 0, "pid": 7}),
        ("hardware_error", "mce: [Hardware Error]: Machine check events logged", {}),
        ("a_kind_of_tomorrow", "something that nobody knows yet", {}),
    ],
)
def test_what_no_hog_can_cause_is_an_incident_of_its_own(
    kind: str, text: str, fields: dict[str, object], tmp_path: Path
) -> None:
    found = storm(Scene()).event(kind, text, 8, "warning", **fields).diagnose(tmp_path).incidents
    assert text not in said(with_pattern(found, "fork-storm"))
    assert len(found) == 2


def test_a_kill_for_memory_beside_a_storm_is_not_its_symptom(tmp_path: Path) -> None:
    scene = storm(Scene()).event("oom_kill", "Killed process 5 (job)", 8, comm="job", pid=5)
    found = scene.diagnose(tmp_path).incidents
    assert {one.causes[0].pattern for one in found} == {"fork-storm", "oom-kill"}
    assert with_pattern(found, "oom-kill").causes[0].hog.comm is None


def test_a_kill_after_memory_was_searched_for_is_its_symptom(tmp_path: Path) -> None:
    path = f"{CALL} vfs_read charge_memcg try_charge_memcg try_to_free_mem_cgroup_pages shrink_node shrink_lruvec"
    scene = Scene(kernel="6.18.0").vmstat().hog(path, "reader", cgroup="/pods/live")
    scene.cgroup_stats("/pods/live", memory_max_events=90_000, has_memory_limit=1)
    scene.event("oom_kill", "Killed process 5 (job)", 10.5, comm="job", pid=5)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "memcg-limit-reclaim"


@SIZES
def test_what_a_hog_used_is_said_in_cores_and_of_how_many(cpus: int, tmp_path: Path) -> None:
    scene = Scene(cpus=cpus).vmstat().census(240, 68_440).hog(WALK, "kubelet")
    incident = scene.diagnose(tmp_path).incidents[0]
    (used,) = [link.fact for link in incident.causes[0].chain if link.step == "hog"]
    assert used == f"kubelet used 1.00 of {cpus} cores"
    # AND what all of them were busy with has the same base
    (lost,) = [symptom.text for symptom in incident.symptoms if symptom.kind == "core_saturated"]
    assert f" of {cpus} cores" in lost
    assert "of the node" not in said(incident)


def test_zombies_that_were_freed_before_the_incident_was_over_are_counted(tmp_path: Path) -> None:
    """Whoever cleans up while symptoms go on does not take the evidence away."""
    scene = Scene(kernel="6.1.0").vmstat()
    for second in range(20):
        scene.census_at(second, 20, 3_000 if second < 8 else 104)
    scene.leak("/system.slice/agent.service/container-*", 3_000, 3_000, 3_000, "python3", "agent.service")
    scene.hog(f"{CALL} ksys_write drop_caches_sysctl_handler drop_slab mem_cgroup_iter", "walker", from_s=4, to_s=14)
    incident = scene.diagnose(tmp_path).incidents[0]
    assert incident.causes[0].pattern == "zombie-memcg"
    assert "3,000" in incident.causes[0].summary
