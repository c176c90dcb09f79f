"""What an incident cost the GPUs of the node: by their own past, and only where somebody saw their threads wait."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.helpers.made import START_US
from tests.helpers.scenes import SYSCALL
from tests.helpers.training import FROM_S, LOOP, TO_S, TRAINER, Training

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Incident
from zombiescope.diagnosis.report.document import document

CALL = " ".join(SYSCALL)
WALK = f"{CALL} vfs_read seq_read memcg_numa_stat_show mem_cgroup_nr_lru_pages"
WRITE = f"{CALL} ksys_write vfs_write ext4_buffered_write_iter generic_perform_write"
WIDTHS = [(2, 1), (16, 1), (192, 16)]
"""Cores and GPUs."""


def only(found: Diagnosis) -> Incident:
    (incident,) = found.incidents
    return incident


def lost(found: Diagnosis) -> float:
    return sum(one.cost.lost_s for one in found.incidents if one.cost is not None)


# --- starved ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cpus", "gpus"), WIDTHS)
def test_busy_loops_on_the_core_of_a_trainer_cost_its_gpu(cpus: int, gpus: int, tmp_path: Path) -> None:
    # GIVEN what was measured on an H200: 9% of a GPU fell to 2% while six loops shared the trainer's core
    node = Training(cpus=cpus, gpus=gpus, usual=9, pod="trainer-3")
    incident = only(node.taken(node.core(0)).use(0, 2).diagnose(tmp_path))
    cause = incident.causes[0]
    # THEN the sentence names the core, who had it, the GPU, whose it is, and what it cost
    assert (cause.pattern, incident.severity) == ("trainer-starved", "warning")
    assert cause.summary == (
        f"core {node.core(0)} was taken by 6 processes of burn for 10 s; "
        "GPU 0 (train.py, pod trainer-3) fell from 9% to 2%: 8 GPU-seconds lost"
    )
    assert (cause.hog.comm, cause.proof) == ("burn", "kernel")
    assert cause.confidence > 0.9
    assert {one.kind for one in incident.symptoms} >= {"gpu_starved"}


@pytest.mark.parametrize("usual", [4, 9, 45, 100])
def test_what_is_usual_is_the_gpus_own_past(usual: int, tmp_path: Path) -> None:
    incident = only(Training(usual=usual).taken(5).use(0, usual // 4).diagnose(tmp_path))
    assert incident.cost is not None
    assert incident.cost.lost_s == pytest.approx(7.5, abs=0.8)


def test_who_started_the_loops_is_to_blame_and_the_trainer_never(tmp_path: Path) -> None:
    node = Training(cpus=16).runs(600, "load.sh", 12, 0.2)
    incident = only(node.taken(5).use(0, 10).diagnose(tmp_path))
    culprit = incident.causes[0].culprit
    assert culprit is not None
    assert culprit.comm == "load.sh"


def test_workers_that_wait_starve_their_trainers_gpu(tmp_path: Path) -> None:
    """The process on the GPU itself has room; what it started has not."""
    incident = only(Training().taken(6).use(0, 30).diagnose(tmp_path))
    assert incident.causes[0].pattern == "trainer-starved"
    assert incident.cost is not None
    assert [one.because for one in incident.cost.losses] == ["waited"]


def test_a_known_cause_says_what_it_cost_and_stays_the_cause(tmp_path: Path) -> None:
    # GIVEN kubelet that walks zombie cgroups on the trainer's core
    node = Training(kernel="5.4.0-1024-aws")
    for second in range(60):
        node.node.census(START_US + (second + 1) * 1_000_000, 240, 68_440)
    node.node.leak(START_US + 1_000_000, "/ecs/*", 68_000, created=500, removed=500, comm="ecs-agent", pid=77)
    node.held(5, "kubelet", WALK, unit="kubelet.service")
    incident = only(node.use(0, 0).diagnose(tmp_path))
    cause = incident.causes[0]
    assert cause.pattern == "zombie-memcg"
    assert cause.summary.startswith("core 5 starved for 10 s: kubelet (kubelet.service) walks 68,440 ")
    assert cause.summary.endswith("; GPU 0 (train.py) fell from 90% to 0%: 10 GPU-seconds lost")
    assert (cause.chain[-1].step, cause.chain[-1].value_unit) == ("cost", "GPU-seconds")
    # AND the sentence without it is still there, for where the cost stands beside it
    assert "GPU" not in cause.because


def test_a_trainer_that_its_cpu_limit_stops_costs_its_gpu(tmp_path: Path) -> None:
    node = Training(cgroup="/kubepods/pod1/trainer")
    figures = {"nr_periods": 100, "nr_throttled": 95, "throttled_us": 9_000_000}
    node.node.add("cgroup_stats", time=START_US + TO_S * 1_000_000, cgroup="/kubepods/pod1", **figures)
    incident = only(node.use(0, 20).diagnose(tmp_path))
    assert incident.causes[0].pattern == "cfs-throttle"
    assert incident.cost is not None
    assert [(one.gpu, one.because) for one in incident.cost.losses] == [(0, "throttled")]


@pytest.mark.parametrize("gpus", [8, 16])
def test_the_other_gpus_of_the_job_wait_at_full_use_and_low_power(gpus: int, tmp_path: Path) -> None:
    """A collective spins: use stays where it was, and power falls."""
    node = Training(cpus=96, gpus=gpus, pod="job-7").taken(5).use(0, 20)
    for gpu in range(1, gpus):
        node.power(gpu, 200)
    incident = only(node.diagnose(tmp_path))
    assert incident.cost is not None
    assert [one.because for one in incident.cost.losses] == ["waited", *["job"] * (gpus - 1)]
    assert f"GPUs 1-{gpus - 1} (train.py, pod job-7) fell from 550 W to 200 W" in incident.causes[0].summary


def test_gpus_of_another_job_that_fall_by_chance_are_not_counted(tmp_path: Path) -> None:
    node = Training(cpus=96, gpus=2).taken(5).use(0, 20).use(1, 20)
    incident = only(node.diagnose(tmp_path))
    assert incident.cost is not None
    # both were started by one process, so they are one job
    assert [one.gpu for one in incident.cost.losses] == [0, 1]
    other = Training(cpus=96, gpus=2, pod="a")
    other.node.tables["gpu_processes"] = [
        (*row[:-2], f"pod-{row[1]}", row[-1]) for row in other.node.tables["gpu_processes"]
    ]
    incident = only(other.taken(5).use(0, 20).use(1, 20).diagnose(tmp_path / "other"))
    assert incident.cost is not None
    assert [one.gpu for one in incident.cost.losses] == [0]


def test_it_is_in_the_document(tmp_path: Path) -> None:
    written = document(Training(usual=9, pod="trainer-3").taken(5).use(0, 2).diagnose(tmp_path))
    (incident,) = json.loads(json.dumps(written))["incidents"]
    cost = incident["cost"]
    assert cost["gpu_seconds_lost"] == pytest.approx(7.78, abs=0.1)
    assert cost["text"].startswith("GPU 0 (train.py, pod trainer-3) fell from 9% to 2%")
    (gpu,) = cost["gpus"]
    assert (gpu["gpu"], gpu["pids"], gpu["usual"], gpu["measure"]) == (0, [TRAINER], 0.09, "utilisation")
    assert gpu["power_usual_w"] > gpu["power_w"]


# --- not known -------------------------------------------------------------------------------------------------------


def test_a_process_that_was_not_sampled_is_not_known_and_not_unharmed(tmp_path: Path) -> None:
    incident = only(Training(sampled=False).taken(5).use(0, 5).diagnose(tmp_path))
    assert incident.cost is not None
    assert incident.cost.losses == ()
    assert [one.gpu for one in incident.cost.not_known] == [0]
    assert "GPU-second" not in incident.causes[0].summary
    (said,) = incident.not_checked
    assert said.startswith(
        "GPU 0 (python3) fell from 90% to 5% in these seconds; whether its process waited is not known"
    )


def test_where_no_gpu_was_read_nothing_is_said_about_it(tmp_path: Path) -> None:
    incident = only(Training(measured=False).taken(5).diagnose(tmp_path))
    assert incident.cost is None
    assert document(Training(measured=False).taken(5).diagnose(tmp_path / "again"))["incidents"][0]["cost"] is None


def test_seconds_in_which_the_driver_did_not_answer_are_no_loss(tmp_path: Path) -> None:
    incident = only(Training().taken(5).use(0, None).diagnose(tmp_path))
    assert incident.cost is not None
    assert incident.cost.losses == ()


# --- near misses: the same fall, and nobody was starved ---------------------------------------------------------------


@pytest.mark.parametrize(("cpus", "gpus"), WIDTHS)
def test_a_gpu_that_does_less_is_no_incident(cpus: int, gpus: int, tmp_path: Path) -> None:
    """An evaluation, or a checkpoint that somebody else writes."""
    node = Training(cpus=cpus, gpus=gpus)
    for gpu in range(gpus):
        node.use(gpu, 5)
    assert node.diagnose(tmp_path).incidents == ()


@pytest.mark.parametrize("cpus", [16, 192])
def test_a_checkpoint_that_the_trainer_writes_itself_costs_nothing(cpus: int, tmp_path: Path) -> None:
    node = Training(cpus=cpus).use(0, 0)
    node.runs(TRAINER, "python3", 5, 0.97, FROM_S, TO_S, frames=WRITE)
    found = node.diagnose(tmp_path)
    assert lost(found) == 0
    assert all(one.severity == "info" for one in found.incidents)


def test_a_core_that_is_taken_elsewhere_costs_this_gpu_nothing(tmp_path: Path) -> None:
    """The GPU fell in the same seconds; its threads had their core."""
    found = Training(cpus=16).taken(12).use(0, 10).diagnose(tmp_path)
    assert lost(found) == 0
    assert "trainer-starved" not in {cause.pattern for one in found.incidents for cause in one.causes}


def test_a_job_that_ends_loses_nothing(tmp_path: Path) -> None:
    """It left at second 44, and the driver was asked at 46; loops have had its core since 40."""
    node = Training().taken(5, to_s=60).use(0, 0, from_s=44, to_s=60).leaves(0, 46)
    for second in range(44, 60):
        node._shares[5, second].pop(node._tasks[TRAINER])
    found = node.diagnose(tmp_path)
    assert lost(found) == 0
    assert not [one for incident in found.incidents for one in incident.symptoms if one.kind == "gpu_starved"]


def test_a_job_that_has_just_come_has_no_past(tmp_path: Path) -> None:
    node = Training()
    row = node.node.tables["gpu_processes"][0]
    node.node.tables["gpu_processes"] = [(START_US + 36_000_000, *row[1:])]
    node.use(0, 0, 0, 36)
    assert lost(node.taken(5).use(0, 20).diagnose(tmp_path)) == 0


def test_a_gpu_that_nobody_uses_cannot_lose_anything(tmp_path: Path) -> None:
    assert lost(Training(usual=0).taken(5).use(0, 0).diagnose(tmp_path)) == 0


def test_a_gpu_that_rises_and_falls_by_itself_is_not_starved(tmp_path: Path) -> None:
    node = Training().taken(5)
    for second in range(0, 60, 20):
        node.use(0, 20, second, second + 10)
    assert lost(node.diagnose(tmp_path)) == 0


def test_a_trainer_that_has_as_much_of_its_core_as_before_was_not_starved(tmp_path: Path) -> None:
    node = Training().use(0, 20)
    node.runs(LOOP, "burn", 5, 0.4, FROM_S, TO_S, ppid=600)
    node._waits.update({(5, second): 400_000 for second in range(FROM_S, TO_S)})
    assert lost(node.diagnose(tmp_path)) == 0


@pytest.mark.parametrize(("cpus", "gpus"), WIDTHS)
def test_healthy_training_is_healthy(cpus: int, gpus: int, tmp_path: Path) -> None:
    found = Training(cpus=cpus, gpus=gpus).diagnose(tmp_path)
    assert (found.incidents, found.noted) == ((), ())


def test_names_that_somebody_else_chose_are_bounded(tmp_path: Path) -> None:
    node = Training(name="\x1b[2J; rm -rf /", pod="p" * 5_000, gpus=1).taken(5, comm="$(reboot)\n")
    incident = only(node.use(0, 10).diagnose(tmp_path))
    cause = incident.causes[0]
    assert cause.pattern == "trainer-starved"
    assert len(cause.summary) < 400
    assert all(step.command is None or step.line.isprintable() for step in cause.fix.steps)
    assert not any("reboot" in step.line for step in cause.fix.steps)
