"""What a line of Python waits for that calls into C, by the native stack under it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, write_segment
from tests.unit.query.test_gpu_account import Trainer, at, waited
from tests.unit.query.test_late_ranks import found, job

from zombiescope.query.native_waits import looks
from zombiescope.store.reader import open_recording

PYTHON = [("_start", "user", "/usr/bin/python3"), ("_PyEval_EvalFrameDefault", "user", "/usr/lib/libpython3.11.so.1.0")]
SYNC = [("cudaStreamSynchronize", "user", "/opt/libcudart.so.12"), ("cuStreamSynchronize", "user", "/lib/libcuda.so.1"),
        ("poll", "user", "/lib/libc.so.6")]  # fmt: skip
NCCL = [("_ZN4c10d16ProcessGroupNCCL8WorkNCCL4waitEv", "user", "/opt/libtorch_cuda.so"), *SYNC]
SLEEP = [("time_sleep", "user", "/usr/lib/libpython3.11.so.1.0"), ("clock_nanosleep", "user", "/lib/libc.so.6")]


def native(made: Trainer, pid: int, frames: list[tuple[str, str, str]], second: float) -> None:
    stack = made.node.stack([made.node.frame(*each) for each in [*PYTHON, *frames]])
    made.node.add("whole_stacks", time=at(second) + 45_000, pid=pid, tid=pid, stack=stack, ended="finished")


@pytest.mark.parametrize(("frames", "state"), [(SYNC, "host"), (NCCL, "collective"), (SLEEP, "unknown")])
def test_a_wait_in_its_own_line_is_told_by_the_native_function(
    frames: list[tuple[str, str, str]], state: str, tmp_path: Path
) -> None:
    # GIVEN an idle GPU, whose process waits in a line of its own code, and one native look every two seconds
    made = Trainer().use(0, {0: 0}).on(0, 70).does(70, "step", 0, 30, "S")
    for second in range(0, 30, 2):
        native(made, 70, frames, second)
    (row,) = made.account(tmp_path).rows
    assert waited(row) == {state: 30}


def test_the_interpreter_and_what_called_it_are_no_place(tmp_path: Path) -> None:
    made = Trainer().use(0, {0: 0}).on(0, 70)
    for second, frames in enumerate((NCCL, SLEEP)):
        native(made, 70, frames, second)
    native(made, 71, NCCL, 3)
    write_segment(tmp_path, made.node.tables)
    with open_recording(tmp_path) as recording:
        (one, two) = looks(recording, at(0), at(30), {70})[70]
    assert [name for name, _ in one.functions][-1].endswith("4waitEv")
    assert (one.purpose, two.purpose) == ("collective", None)
    assert two.place == "clock_nanosleep (libc.so.6)"


def test_a_hang_says_the_native_functions_of_both_sides(tmp_path: Path) -> None:
    made = job(lambda rank, look: "step" if rank == 1 and look >= 100 else "collective" if look % 5 else "step",
               seconds=45)  # fmt: skip
    for second in range(12, 45, 2):
        for rank in range(4):
            native(made, 800 + rank, SLEEP if rank == 1 else NCCL[:1], second)
    (one,), _ = found(made, tmp_path)
    assert (one.rank.rank, one.is_stuck) == (1, False)  # all leave the collective every half second
    assert one.native == "clock_nanosleep (libc.so.6)"
    assert one.wait_native == "c10d::ProcessGroupNCCL::WorkNCCL::wait (libtorch_cuda.so)"


def test_a_wait_of_the_device_that_does_not_end_is_a_collective(tmp_path: Path) -> None:
    # GIVEN ranks whose collectives run on the device: they wait in .item(), natively in cudaStreamSynchronize
    def away(rank: int, look: int) -> str:
        return "evaluate" if rank == 2 and look >= 100 else "step"

    made = job(away, seconds=45)
    for second in range(1, 45, 2):
        for rank in (0, 1, 3):
            native(made, 800 + rank, SYNC, second)
    (one,), _ = found(made, tmp_path)
    assert (one.rank.rank, one.is_stuck) == (2, True)
    assert one.from_us == pytest.approx(at(10), abs=6 * SECOND)


def test_looks_that_became_rare_do_not_hide_a_hang(tmp_path: Path) -> None:
    # GIVEN a busy machine: now and then nobody was looked at for a second
    def away(rank: int, look: int) -> str:
        if look >= 100 and look % 40 < 10:
            return ""
        return "evaluate" if rank == 1 and look >= 100 else "collective" if look % 5 or look >= 100 else "step"

    (one,), _ = found(job(away, seconds=45), tmp_path)
    assert (one.rank.rank, one.is_stuck) == (1, True)
