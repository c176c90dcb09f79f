"""Where the GPU seconds went: states that add up to the wall time, what is not known, and who shares a GPU."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US, Node, write_segment

from zombiescope.query.gpu_account import Account, GpuSeconds, account
from zombiescope.store.reader import open_recording

TRAIN = "job/train.py"
LOADER = "site-packages/torch/utils/data/dataloader.py"
C10D = "site-packages/torch/distributed/distributed_c10d.py"
QUEUE = "python3.11/queue.py"
STACKS = {
    "data": (("main", TRAIN, 12), ("_BaseDataLoaderIter.__next__", LOADER, 721), ("Queue.get", QUEUE, 171)),
    "collective": (("main", TRAIN, 14), ("all_reduce", C10D, 2950)),
    "step": (("main", TRAIN, 13),),
    "save": (("main", TRAIN, 15), ("save", "site-packages/torch/serialization.py", 900)),
    "evaluate": (("main", TRAIN, 16), ("evaluate", TRAIN, 40)),
}
SECONDS = 30


def at(second: float) -> int:
    return START_US + round(second * SECOND)


class Trainer:
    """A node with GPUs on which processes do one thing after the other, looked at ten times a second."""

    def __init__(self, gpus: int = 1) -> None:
        self.node = Node()
        for gpu in range(gpus):
            self.node.gpu(at(0), gpu)

    def use(self, gpu: int, percent: dict[int, int | None], **figures: int) -> Trainer:
        """Utilisation from a second on, until another is given."""
        now: int | None = 0
        for second in range(SECONDS):
            now = percent.get(second, now)
            if now is not None:
                self.node.gpu_second(at(second + 1), gpu, now, **figures)
        return self

    def on(self, gpu: int, pid: int, **known: Any) -> Trainer:
        self.node.gpu_process(at(0), gpu, pid, "python3", start_ticks=1, **known)
        return self

    def rank(self, pid: int, rank: int, **known: Any) -> Trainer:
        job = {"job": "7", "kind": "slurm", "uid": 1, "world_size": 2, "rank": rank}
        self.node.add("ranks", **{"time": at(0), "pid": pid, "start_ticks": 1, "ended": 0, **job, **known})
        return self

    def does(self, pid: int, what: str, from_s: float, to_s: float, state: str = "S", hz: int = 10) -> Trainer:
        frames = [self.node.frame(name, "python", file) for name, file, _ in STACKS[what]]
        lines = [line for _, _, line in STACKS[what]]
        for look in range(round(from_s * hz), round(to_s * hz)):
            seen = {"frames": frames, "lines": lines, "state": state, "comm": "python3"}
            self.node.python(at(look / hz) + 40_000, task_tid=pid, **seen)  # type: ignore[arg-type]
        return self

    def account(self, place: Path, by: str = "job", to_s: float = SECONDS) -> Account:
        write_segment(place, self.node.tables)
        with open_recording(place) as recording:
            return account(recording, at(0), at(to_s), by)  # type: ignore[arg-type]


def total(row: GpuSeconds) -> float:
    return row.busy_s + float(sum(asdict(row.waited).values()))


def waited(row: GpuSeconds) -> dict[str, float]:
    return {name: round(value, 2) for name, value in asdict(row.waited).items() if value >= 0.01}


def test_every_second_is_busy_or_waits_for_something(tmp_path: Path) -> None:
    # GIVEN 10 s of use, 10 s in next(loader), 5 s in all_reduce, 5 s computing on the host
    made = Trainer().use(0, {0: 90, 10: 0}).on(0, 70).does(70, "step", 0, 10, "R").does(70, "data", 10, 20)
    made.does(70, "collective", 20, 25).does(70, "step", 25, 30, "R")
    (row,) = made.account(tmp_path).rows
    assert (row.wall_s, row.busy_s, row.gpus) == (30, 9, 1)
    assert waited(row) == {"data": 10, "collective": 5, "host": 6}
    assert total(row) == pytest.approx(30, abs=0.01)


def test_what_nobody_looked_at_is_unknown_and_is_not_spread(tmp_path: Path) -> None:
    made = Trainer().use(0, {0: 0}).on(0, 70).does(70, "data", 10, 15)
    (row,) = made.account(tmp_path).rows
    assert waited(row) == {"data": 5, "unknown": 25}


def test_one_look_in_a_second_stands_for_a_third_of_it(tmp_path: Path) -> None:
    made = Trainer().use(0, {0: 0}).on(0, 70)
    for second in (3, 9):
        made.does(70, "data", second, second + 0.1)
    (row,) = made.account(tmp_path).rows
    assert waited(row) == {"data": 0.67, "unknown": 29.33}


def test_a_gpu_without_rows_was_not_measured_and_one_without_processes_is_unused(tmp_path: Path) -> None:
    made = Trainer(gpus=2).use(0, {0: None}).use(1, {0: 0})
    rows = {row.gpu: row for row in made.account(tmp_path, "gpu").rows}
    assert waited(rows[0]) == {"unknown": 30}
    assert waited(rows[1]) == {"unused": 30}


def test_two_jobs_on_one_gpu_have_half_each_and_nobody_knows_whom_it_worked_for(tmp_path: Path) -> None:
    made = Trainer().use(0, {0: 60}).on(0, 70, pod="a" * 32).on(0, 71, pod="b" * 32).does(70, "data", 0, 30)
    made.does(71, "step", 0, 30, "R")
    rows = {row.pod: row for row in made.account(tmp_path).rows}
    assert [row.wall_s for row in rows.values()] == [15, 15]
    assert [row.busy_s for row in rows.values()] == [0, 0]
    assert waited(rows["a" * 32]) == {"data": 6, "unknown": 9}
    assert waited(rows["b" * 32]) == {"host": 6, "unknown": 9}
    (gpu,) = made.account(tmp_path / "gpu", "gpu").rows
    assert (gpu.busy_s, gpu.job) == (18, None)


def test_clocks_that_heat_holds_down_are_throttled_and_a_power_cap_is_not(tmp_path: Path) -> None:
    made = Trainer(gpus=2).use(0, {0: 100}, hw_thermal_ns=250_000_000).use(1, {0: 100}, power_cap_ns=SECOND * 1000)
    made.on(0, 70).on(1, 71)
    rows = {row.gpu: row for row in made.account(tmp_path, "gpu").rows}
    assert (rows[0].busy_s, waited(rows[0])) == (22.5, {"throttled": 7.5})
    assert (rows[1].busy_s, waited(rows[1])) == (30, {})


def test_a_lost_gpu_is_broken_from_then_on(tmp_path: Path) -> None:
    made = Trainer().use(0, {0: 100, 20: None}).on(0, 70)
    made.node.gpu(at(20), 0, state="lost")
    (row,) = made.account(tmp_path).rows
    assert (row.busy_s, waited(row)) == (20, {"broken": 10})


def test_workers_that_were_stopped_by_a_signal_and_a_file_server_are_told_from_slow_data(tmp_path: Path) -> None:
    made = Trainer().use(0, {0: 0}).on(0, 70).does(70, "data", 0, 30)
    made.node.wait(at(12), at(5), "pt_data_worker", 80, kind="stopped", resource="python3:70", state="T")
    made.node.wait(at(25), at(20), "python3", 70, kind="nfs", resource="srv:/data")
    (row,) = made.account(tmp_path).rows
    found = waited(row)
    assert found["stopped"] == pytest.approx(7, abs=0.2)
    assert found["storage"] == pytest.approx(5, abs=0.2)
    assert found["data"] == pytest.approx(18, abs=0.4)


@pytest.mark.parametrize(("state", "data", "storage"), [("D", 0, 30), ("S", 30, 0)])
def test_workers_that_are_mostly_in_state_d_wait_for_storage(
    state: str, data: float, storage: float, tmp_path: Path
) -> None:
    # GIVEN a worker that is looked at once a second, in reads too short to be listed as a wait
    made = Trainer().use(0, {0: 0}).on(0, 70).does(70, "data", 0, 30)
    made.node.task(80, "pt_data_worker", ppid=70)
    made.does(80, "step", 0, 30, state, hz=1)
    (row,) = made.account(tmp_path).rows
    assert waited(row).get("data", 0) == pytest.approx(data, abs=0.5)
    assert waited(row).get("storage", 0) == pytest.approx(storage, abs=0.5)


def test_whoever_wants_to_run_and_is_not_sampled_waits_for_a_core(tmp_path: Path) -> None:
    # GIVEN a main thread that looks runnable for 30 s, on a core all of the time, and from 10 s on a fifth of it
    made = Trainer().use(0, {0: 0}).on(0, 70).does(70, "step", 0, 30, "R")
    task, stack = made.node.task(70, "python3"), made.node.stack([made.node.frame("main", "user")])
    for second in range(SECONDS):
        for sample in range(99 if second < 10 else 20):
            made.node.sample(at(second) + sample * 10_000, 1, task, stack)
    (row,) = made.account(tmp_path).rows
    assert waited(row)["core"] == pytest.approx(16, abs=0.5)
    assert waited(row)["host"] == pytest.approx(14, abs=0.5)


def test_lines_by_process_have_rank_and_job_and_add_up_to_the_gpus(tmp_path: Path) -> None:
    made = Trainer(gpus=2).use(0, {0: 50}).use(1, {0: 50}).on(0, 70).on(1, 71).rank(70, 0).rank(71, 1)
    rows = made.account(tmp_path, "process").rows
    assert {(row.pid, row.rank, row.job, row.gpu) for row in rows} == {(70, 0, "slurm/7", 0), (71, 1, "slurm/7", 1)}
    (job,) = made.account(tmp_path / "job").rows
    assert (job.job, job.gpus, job.wall_s, job.busy_s, job.gpu) == ("slurm/7", 2, 60, 30, None)


@pytest.mark.parametrize(
    ("what", "phase", "state"),
    [("data", None, "data"), ("collective", None, "collective"), ("save", "checkpoint", "storage"),
     ("evaluate", "evaluation", "unknown")],
)  # fmt: skip
def test_an_idle_gpu_is_a_sentence_and_checkpoints_and_evaluations_are_told_apart(
    what: str, phase: str | None, state: str, tmp_path: Path
) -> None:
    made = Trainer().use(0, {0: 90, 15: 0, 25: 90}).on(0, 70).rank(70, 3).does(70, "step", 0, 15, "R")
    made.does(70, what, 15, 25).does(70, "step", 25, 30, "R")
    (idle,) = made.account(tmp_path).idle
    assert (idle.from_us, idle.to_us, idle.gpu, idle.pid, idle.rank) == (at(15), at(25), 0, 70, 3)
    assert (idle.phase, idle.state, idle.usual) == (phase, state, 90)


def idle_text(made: Trainer, place: Path) -> str:
    made.use(0, {0: 90, 15: 0, 25: 90}).on(0, 70).rank(70, 3).does(70, "step", 0, 15, "R")
    made.does(70, "data", 15, 25).does(70, "step", 25, 30, "R")
    (idle,) = made.account(place).idle
    return idle.text


WAITS = ("GPU 0 idle for 10 s (usually 90%): python3 (rank 3, pid 70) waits for the next batch in "
         "_BaseDataLoaderIter.__next__, train.py:12")  # fmt: skip


def test_an_idle_gpu_says_that_its_workers_are_stopped(tmp_path: Path) -> None:
    made = Trainer()
    for worker in range(8):
        made.node.wait(at(25), at(15), "pt_data_worker", 80 + worker, kind="stopped", resource="python3:70", state="T")
    assert idle_text(made, tmp_path) == f"{WAITS}; its 8 workers are stopped (SIGSTOP)"


def test_an_idle_gpu_says_where_in_the_kernel_its_workers_wait(tmp_path: Path) -> None:
    made = Trainer()
    for worker in (80, 81):
        made.node.task(worker, "pt_data_worker", ppid=70)
        made.node.wait(at(25), at(15), "pt_data_worker", worker, kind="nfs", resource="srv:/data",
                       frames="nfs_file_read;rpc_wait_bit_killable", state="D")  # fmt: skip
    words = "waits for storage in _BaseDataLoaderIter.__next__, train.py:12; its 2 workers wait for nfs srv:/data"
    assert f"{words} in rpc_wait_bit_killable (state D)" in idle_text(made, tmp_path)


def test_an_idle_gpu_says_that_its_workers_sleep_or_how_much_cpu_they_use(tmp_path: Path) -> None:
    made = Trainer()
    made.node.wait(at(25), at(15), "pt_data_worker", 80, kind="asleep", resource="python3:70", wchan="futex_wait")
    assert idle_text(made, tmp_path / "asleep") == f"{WAITS}; its worker sleeps in futex_wait"
    busy = Trainer()
    task, stack = busy.node.task(80, "pt_data_worker", ppid=70), busy.node.stack([busy.node.frame("decode", "user")])
    for sample in range(30 * 99):
        busy.node.sample(at(0) + sample * 10_101, 1, task, stack)
    assert idle_text(busy, tmp_path / "busy") == f"{WAITS}; its worker used 100% of a core"


def test_a_process_that_is_itself_stopped_says_so(tmp_path: Path) -> None:
    made = Trainer()
    made.node.wait(at(25), at(15), "python3", 70, kind="stopped", resource="bash:1", state="T")
    assert "python3 (rank 3, pid 70) is itself stopped by a signal (SIGSTOP)" in idle_text(made, tmp_path)


def test_a_gpu_that_its_process_leaves_is_at_the_end(tmp_path: Path) -> None:
    made = Trainer().use(0, {0: 90, 15: 0}).on(0, 70).does(70, "step", 0, 18, "R")
    made.node.gpu_process(at(18), 0, 70, "python3", start_ticks=1, ended=True)
    (idle,) = made.account(tmp_path).idle
    assert idle.phase == "end"


def test_a_recording_without_gpus_has_no_lines(tmp_path: Path) -> None:
    node = Node()
    node.core(at(1), 0)
    write_segment(tmp_path, node.tables)
    with open_recording(tmp_path) as recording:
        assert account(recording, at(0), at(10)) == Account((), ())
