"""GPU seconds by job as metrics: they add up to the wall time, agree with the command, and their labels are bounded."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, Node, write_segment
from tests.unit.query.test_gpu_account import Trainer, at

from zombiescope.agent.metrics import families
from zombiescope.agent.metrics.gpu_seconds_account import TABLES, GpuSecondsAccount
from zombiescope.agent.tally import Tally
from zombiescope.query.gpu_account import account
from zombiescope.store.log import Block
from zombiescope.store.reader import open_recording
from zombiescope.store.tail import Tail


@pytest.fixture
def tally() -> Tally:
    return Tally(families.FAMILIES)


def counted(node: Node, place: Path, tally: Tally) -> dict[tuple[str, ...], float]:
    """As Books.take hands it over, frame by frame."""
    write_segment(place, node.tables)
    made = GpuSecondsAccount(tally)
    later: list[Block] = []
    with Tail(place / "node=lab") as tail:
        for frame in tail.poll():
            for block in frame.blocks:
                if block.table.name == "gpu_seconds":
                    later.append(block)  # they come seconds after what they are about
                elif block.table.name in TABLES:
                    made.update(block, counted=True)
    for block in later:
        made.update(block, counted=True)
    made.publish()
    return tally.values(families.JOB_GPU_SECONDS)


def test_states_add_up_to_the_wall_time_and_are_those_of_the_command(tmp_path: Path, tally: Tally) -> None:
    made = Trainer().use(0, {0: 90, 10: 0}).on(0, 70).rank(70, 3).does(70, "step", 0, 10, "R").does(70, "data", 10, 20)
    made.does(70, "collective", 20, 25)
    found = counted(made.node, tmp_path, tally)
    assert sum(found.values()) == pytest.approx(30)
    with open_recording(tmp_path) as recording:
        (row,) = account(recording, at(0), at(30)).rows
    for state in ("data", "collective", "host", "unknown"):
        assert found["", "slurm/7", state] == pytest.approx(getattr(row.waited, state), abs=0.6), state
    assert found["", "slurm/7", "busy"] == pytest.approx(row.busy_s)


def test_a_pods_owner_names_the_job_and_who_is_on_the_gpu(tmp_path: Path, tally: Tally) -> None:
    made = Trainer().use(0, {0: 40}).on(0, 70, container="b" * 64, pod="u" * 32)
    made.node.container(at(0), "b" * 64, name="trainer", pod="llama-0", namespace="ml", owner="Job/llama")
    found = counted(made.node, tmp_path, tally)
    assert found["ml", "Job/llama", "busy"] == pytest.approx(12)
    (labels,) = tally.values(families.GPU_PROCESS_INFO)
    assert (labels[0], *labels[2:]) == ("0", "ml", "llama-0", "trainer", "Job/llama")
    ((gpu, uuid, pci, model),) = tally.values(families.GPU_INFO)
    assert (gpu, pci, model) == ("0", "0000:01:00.0", "NVIDIA H200")
    assert uuid.startswith("GPU-")


def test_two_jobs_on_one_gpu_share_its_time_and_nobody_is_busy(tmp_path: Path, tally: Tally) -> None:
    made = Trainer().use(0, {0: 60}).on(0, 70, unit="a.service").on(0, 71, unit="b.service")
    found = counted(made.node, tmp_path, tally)
    assert found == {("", "a.service", "unknown"): pytest.approx(15), ("", "b.service", "unknown"): pytest.approx(15)}


def test_a_gpu_without_processes_is_unused(tmp_path: Path, tally: Tally) -> None:
    assert counted(Trainer().use(0, {0: 0}).node, tmp_path, tally) == {("", "", "unused"): pytest.approx(30)}


def test_whoever_makes_up_names_makes_no_series_without_end(tmp_path: Path, tally: Tally) -> None:
    made = Trainer().use(0, {0: 50})
    for number in range(1000):
        made.node.gpu_process(at(0), 0, 5000 + number, "x", start_ticks=1, unit=f"evil-{number}.service")
    found = counted(made.node, tmp_path, tally)
    bound = {one.name: one.most for one in families.FAMILIES}
    assert len(found) <= bound[families.JOB_GPU_SECONDS] + 1
    assert len(tally.values(families.GPU_PROCESS_INFO)) <= bound[families.GPU_PROCESS_INFO] + 1
    assert sum(found.values()) == pytest.approx(30)


def test_looks_of_an_earlier_segment_keep_their_meaning(tally: Tally, tmp_path: Path) -> None:
    made = GpuSecondsAccount(tally)
    first = Trainer(gpus=0).does(70, "data", 0, 1).node
    write_segment(tmp_path, first.tables)
    with Tail(tmp_path / "node=lab") as tail:
        for frame in tail.poll():
            for block in frame.blocks:
                if block.table.name in TABLES:
                    made.update(block, counted=True)
    made.end_segment()
    states = made._states(made._looks[at(1) // SECOND][70])
    assert states == {"data": 10}


def test_steps_are_counted_by_the_job_that_reported_them(tmp_path: Path, tally: Tally) -> None:
    # GIVEN a rank in a pod, one without a pod, a program that is no rank, and an evaluation
    made = Trainer(gpus=0).rank(70, 3, container="b" * 64).rank(71, 4)
    made.node.container(at(0), "b" * 64, name="trainer", pod="llama-0", namespace="ml", owner="Job/llama")
    for pid in (70, 71, 99):
        made.node.add("steps", time=at(3), pid=pid, rank=None, first=0, took_us=(250_000, 750_000))
    made.node.add("steps", time=at(9), pid=70, rank=None, first=9, phase="eval", took_us=(9_000_000,))
    counted(made.node, tmp_path, tally)
    whose = [("ml", "Job/llama"), ("", "slurm/7"), ("", "")]
    assert tally.values(families.JOB_STEPS) == dict.fromkeys(whose, 2)
    assert tally.values(families.JOB_STEP_SECONDS) == dict.fromkeys(whose, pytest.approx(1.0))
