"""Few zombies, and processes that are somebody else's: what is walked and what is started is told apart."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.scenes import SYSCALL, Scene

CALL = " ".join(SYSCALL)
EXEC_WALK = (
    f"{CALL} __x64_sys_execve do_execveat_common bprm_execve setup_arg_pages handle_mm_fault try_charge_memcg "
    "try_to_free_mem_cgroup_pages shrink_node mem_cgroup_iter"
)


def storm_of(frames: str, *, per_s: float) -> Scene:
    """Short-lived children of one script, one after the other."""
    scene = Scene(kernel="6.18.0").vmstat().counter("stat", "processes", per_s).counter("stat", "ctxt", 9_000)
    for number in range(60):
        from_s = 5 + number * 0.1
        scene.hog(frames, "sh", pid=5000 + number, ppid=700, from_s=from_s, to_s=from_s + 0.1)
    return scene.hog("", "agent", pid=700, cpu=0, share=0.1)


def test_a_walk_of_few_zombies_is_not_a_storm_of_forks(tmp_path: Path) -> None:
    # GIVEN 455 zombies that every new process walks, because its cgroup is at its limit
    scene = storm_of(EXEC_WALK, per_s=100).census(20, 455).leak("/jobs/*", 455, 500, 500, "leaky")
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "zombie-memcg"
    assert "fork-storm" in {one.pattern for one in incident.ruled_out}
    assert incident.causes[0].culprit is not None
    assert incident.causes[0].culprit.comm == "leaky"


def test_a_walk_of_cgroups_that_are_in_use_is_not_the_zombies_doing(tmp_path: Path) -> None:
    scene = storm_of(EXEC_WALK, per_s=100).census(2_000, 455)
    named = {cause.pattern for incident in scene.diagnose(tmp_path).incidents for cause in incident.causes}
    assert "zombie-memcg" not in named


def test_few_zombies_that_are_hardly_walked_are_no_cause(tmp_path: Path) -> None:
    fork = f"{CALL} __do_sys_clone kernel_clone copy_process dup_mm copy_page_range"
    scene = storm_of(fork, per_s=900).census(20, 455)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert incident.causes[0].pattern == "fork-storm"
    assert "zombie-memcg" in {one.pattern for one in incident.ruled_out}


def test_processes_that_others_start_do_not_make_a_storm_of_one_that_ends(tmp_path: Path) -> None:
    # GIVEN a large program that ends, while others start a hundred processes a second
    scene = Scene().vmstat().counter("stat", "processes", 100).counter("stat", "ctxt", 9_000)
    scene.hog(f"{CALL} do_exit exit_mmap unmap_vmas zap_pte_range", "python3", pid=3000, ppid=700)
    for incident in scene.diagnose(tmp_path).incidents:
        storm = [cause for cause in incident.causes if cause.pattern == "fork-storm"]
        assert all(cause.confidence <= 0.5 for cause in storm)
