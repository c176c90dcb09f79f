"""The founding pattern in full: who leaks by each rung of the ladder, what keeps the zombies, what a read will cost."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.scenes import SYSCALL, Scene

from zombiescope.diagnosis import symptoms
from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Cause, Incident, Link
from zombiescope.diagnosis.report.markdown import markdown
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.model.plans.step import RELEASE

CALL = " ".join(SYSCALL)
READ = f"{CALL} vfs_read seq_read memcg_numa_stat_show mem_cgroup_nr_lru_pages"
RECLAIM = f"{CALL} vfs_write try_charge_memcg try_to_free_mem_cgroup_pages shrink_node mem_cgroup_iter"


def old() -> Scene:
    return Scene(kernel="5.4.0").vmstat().census(240, 68_440).hog(READ, "kubelet")


def new() -> Scene:
    return Scene(kernel="6.18.0").vmstat().census(240, 68_440).hog(RECLAIM, "worker")


def cause_of(scene: Scene, directory: Path) -> Cause:
    (incident,) = scene.diagnose(directory).incidents
    cause = incident.causes[0]
    assert cause.pattern == "zombie-memcg"
    return cause


def step(cause: Cause, name: str) -> Link:
    return next(link for link in cause.chain if link.step == name)


# --- who leaks ------------------------------------------------------------------------------------------------------


def test_a_unit_with_dying_cgroups_directly_below_it_leaks_them(tmp_path: Path) -> None:
    # GIVEN zombies that are older than the recorder: no line of the ledger
    scene = old().gauge("dying", "own", 68_000, "/system.slice/ecs.service").gauge("dying", "own", 4, "/user.slice")
    cause = cause_of(scene, tmp_path)
    assert cause.culprit is not None
    assert cause.culprit.unit == "ecs.service"
    assert (step(cause, "leak").value, step(cause, "leak").value_unit) == (68_000, "cgroups")


@pytest.mark.parametrize("where", ["/system.slice/docker.service", "/kubepods.slice", "/system.slice", "/docker"])
def test_a_runtime_or_a_shared_slice_is_a_place_and_nobody(tmp_path: Path, where: str) -> None:
    cause = cause_of(old().gauge("dying", "own", 68_000, where), tmp_path)
    assert cause.culprit is None
    assert f"68,000 dying cgroups were directly below {where}" in step(cause, "leak").fact
    assert "cannot be named" in cause.summary
    assert not [one for one in cause.fix.steps if "systemctl" in one.line]


def restarting(unit: str, where: str, *, each_s: int = 5, grows: float = 1.0, **fields: str) -> Scene:
    """Three minutes in which a unit restarts, and zombies grow by so many a restart."""
    scene = Scene(kernel="5.4.0").vmstat().gauge("dying", "own", 68_000, where).hog(READ, "kubelet")
    for second in range(-180, 20):
        scene.census_at(second, live=240, dying=68_440 + int(grows * second / each_s))
        if second % each_s == 0:
            scene.event("unit_restart", f"{unit} restarts", second, "info", unit=unit, **fields)
    return scene


def test_below_a_slice_it_is_the_unit_that_restarts_there_as_fast_as_they_grow(tmp_path: Path) -> None:
    cause = cause_of(restarting("ecs.service", "/system.slice"), tmp_path)
    assert cause.culprit is not None
    assert (cause.culprit.unit, cause.culprit.cgroup) == ("ecs.service", "/system.slice")


@pytest.mark.parametrize(
    "scene",
    [
        pytest.param(restarting("snapd.service", "/kubepods.slice"), id="another slice"),
        pytest.param(restarting("snapd.service", "/kubepods.slice/kubepods-burstable.slice"), id="a slice below"),
        pytest.param(
            restarting("web.service", "/system.slice", control_group="/web.slice/web.service"), id="a slice of its own"
        ),
        pytest.param(restarting("snapd.service", "/system.slice", grows=40), id="far more zombies than restarts"),
        pytest.param(restarting("snapd.service", "/system.slice", grows=0), id="no growth"),
        pytest.param(restarting("docker.service", "/system.slice"), id="a runtime"),
        pytest.param(
            old()
            .gauge("dying", "own", 68_000, "/system.slice")
            .event("unit_restart", "snapd.service restarts", 3, "info", unit="snapd.service"),
            id="unknown growth",
        ),
        pytest.param(
            old().event("unit_restart", "snapd.service restarts", 3, "info", unit="snapd.service"), id="unknown place"
        ),
    ],
)
def test_a_unit_that_restarts_is_not_to_blame_unless_place_and_rhythm_match(tmp_path: Path, scene: Scene) -> None:
    cause = cause_of(scene, tmp_path)
    assert cause.culprit is None
    assert not [one for one in cause.fix.steps if ".service" in one.line]


def test_one_restart_an_hour_is_no_rhythm(tmp_path: Path) -> None:
    # GIVEN an hour in which one zombie came, and one unit restarted
    scene = Scene(kernel="5.4.0").vmstat().gauge("dying", "own", 68_000, "/system.slice").hog(READ, "kubelet")
    for second in range(-3500, 20, 20):
        scene.census_at(second, live=240, dying=68_440 + (second + 3500) // 3500)
    scene.event("unit_restart", "snapd.service restarts", -900, "info", unit="snapd.service")
    assert cause_of(scene, tmp_path).culprit is None


def test_where_growth_was_not_measured_as_many_restarts_as_zombies_match(tmp_path: Path) -> None:
    restarts = {"unit": "ecs.service", "n_restarts": 68_200, "delta": 1}
    cause = cause_of(old().event("unit_restart", "ecs.service restarts", 3, "info", **restarts), tmp_path)
    assert cause.culprit is not None
    assert cause.culprit.unit == "ecs.service"
    assert "restarted 68,200 times" in step(cause, "leak").fact


def test_what_the_ledger_saw_counts_more(tmp_path: Path) -> None:
    scene = old().gauge("dying", "own", 68_000, "/system.slice/docker.service").leak("/jobs/*", 900, 900, 900, "leaky")
    cause = cause_of(scene, tmp_path)
    assert cause.culprit is not None
    assert cause.culprit.comm == "leaky"


# --- what keeps them ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "shmem", "says"),
    [(300_000_000, 1_000_000, "memory.force_empty"), (1_000_000, 300_000_000, "remove the tmpfs files")],
)
def test_how_they_are_released_depends_on_what_keeps_them(tmp_path: Path, file: int, shmem: int, says: str) -> None:
    scene = new().gauge("dying", "file", file, "/jobs").gauge("dying", "shmem", shmem, "/jobs")
    cause = cause_of(scene, tmp_path)
    link = step(cause, "kept by")
    assert (link.value, link.value_unit) == (301_000_000, "bytes")
    assert "300.0 MB" in link.fact
    assert any(says in step.line for step in cause.fix.steps)


def releases(tmp_path: Path, file: int, shmem: int) -> str:
    scene = new().gauge("dying", "file", file, "/jobs").gauge("dying", "shmem", shmem, "/jobs")
    return " ".join(step.line for step in cause_of(scene, tmp_path).fix.steps if "release them" in step.line)


def test_the_advice_does_not_flip_as_two_counts_cross(tmp_path: Path) -> None:
    # GIVEN as much of one as of the other, and a little more now of this and then of that
    told = {releases(tmp_path / f"{file}", file, 100_000_000) for file in (99_999_000, 100_001_000, 99_990_000)}
    assert len({text.replace("100.0 MB", "").replace("99.9 MB", "") for text in told}) == 1
    assert all("tmpfs files" in text and "memory.force_empty" in text for text in told)


def test_no_place_is_guessed_for_files_that_nobody_saw(tmp_path: Path) -> None:
    text = releases(tmp_path, 1_000_000, 300_000_000)
    assert "/dev/shm" not in text
    assert "not known" in text


@pytest.mark.parametrize(("living", "says"), [(7_000_000, "7.0 MB"), (None, "was not measured")])
def test_what_reclaiming_costs_the_others_is_told(tmp_path: Path, living: int | None, says: str) -> None:
    scene = new().gauge("dying", "file", 300_000_000, "/jobs").gauge("dying", "shmem", 0, "/jobs")
    scene = scene if living is None else scene.gauge("dying", "living_file", living, "/jobs")
    (release,) = [step.line for step in cause_of(scene, tmp_path).fix.steps if "release them" in step.line]
    assert says in release
    assert "(/jobs)" in release


def test_what_was_not_measured_is_not_told(tmp_path: Path) -> None:
    assert "kept by" not in {link.step for link in cause_of(new(), tmp_path).chain}


# --- what a read costs ----------------------------------------------------------------------------------------------


def test_the_cost_of_a_read_is_foretold_while_they_grow(tmp_path: Path) -> None:
    # GIVEN 8 us a cgroup on a kernel that walks, and zombies that grew by one a second for some minutes
    scene = Scene(kernel="5.4.0").vmstat().gauge("probe", "numa_stat_leaf_ns", 8_000).hog(READ, "kubelet")
    for second in range(-200, 20):
        scene.census_at(second, live=240, dying=68_440 + second)
    link = step(cause_of(scene, tmp_path), "cost")
    assert link.value == pytest.approx(68_700 * 8e-6, rel=0.01)
    assert "1 s from 20" in link.fact
    assert "5 s from 20" in link.fact


def test_on_a_kernel_that_does_not_walk_reading_is_said_to_be_cheap(tmp_path: Path) -> None:
    link = step(cause_of(new().gauge("probe", "stat_leaf_ns", 20_000), tmp_path), "cost")
    assert "cheap on this kernel" in link.fact
    assert "reclaim" in link.fact


# --- what to do -----------------------------------------------------------------------------------------------------


def test_a_plan_tells_commands_from_advice(tmp_path: Path) -> None:
    cause = cause_of(new().leak("/system.slice/ecs.service", 68_000, 500, 500, "systemd", "ecs.service"), tmp_path)
    (stops,) = [step for step in cause.fix.steps if step.touches]
    assert (stops.command, stops.undo, stops.verify) == (
        "systemctl disable --now ecs.service",
        "systemctl enable --now ecs.service",
        "systemctl is-active ecs.service",
    )
    assert cause.fix.summary == "stop ecs.service, then release the zombies"
    assert "zombiescope cgroups" in [step.command for step in cause.fix.steps]
    assert [step.kind for step in cause.fix.steps if "release them" in step.line] == ["advice"]
    assert "1. lasting: release them" in markdown(Diagnosis("lab", 0, 1, (incident_of(cause),), ()), "x", str)


def places(cause: Cause) -> list[str]:
    acts = [step.act for step in cause.fix.steps if step.act is not None and step.act.kind == RELEASE]
    return [path for _, path in acts[0].arguments]


def test_only_places_at_which_cgroups_were_seen_to_die_are_released(tmp_path: Path) -> None:
    many = new().leak("/jobs/*", 60_000, 60_000, 60_000).leak("/other/*", 40, 900, 900, "tidy")
    assert places(cause_of(many, tmp_path / "ledger")) == ["/jobs/*"]
    counted = new().gauge("dying", "own", 60_000, "/system.slice").gauge("dying", "own", 30, "/user.slice")
    assert places(cause_of(counted, tmp_path / "counted")) == ["/system.slice/*"]
    assert places(cause_of(new(), tmp_path / "nothing")) == []


def incident_of(cause: Cause) -> Incident:
    return Incident("1", 0, 1, "closed", "warning", (Symptom(symptoms.by_kind("event"), 0, 1, "x"),), (cause,))
