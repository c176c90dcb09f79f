"""Who is late: ranks that are elsewhere while all others wait, and what must never be named."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers.made import SECOND, Node, write_segment
from tests.unit.query.test_gpu_account import Trainer, at

from zombiescope.query import late_ranks
from zombiescope.query.jobs import jobs, steps
from zombiescope.query.late_ranks import AllWait, Late
from zombiescope.store.reader import open_recording

Away = Callable[[int, int], str]
"""(rank, tenth of a second) -> what the rank does."""


def job(away: Away, ranks: int = 4, seconds: int = 40, state: str = "S") -> Trainer:
    made = Trainer(gpus=0)
    for rank in range(ranks):
        made.rank(800 + rank, rank, world_size=ranks)
        for look in range(seconds * 10):
            what = away(rank, look)
            if what:
                made.does(800 + rank, what, look / 10, (look + 1) / 10, state)
    return made


def found(made: Trainer, place: Path) -> tuple[list[Late], list[AllWait]]:
    write_segment(place, made.node.tables)
    with open_recording(place) as recording:
        span = recording.start_us, recording.end_us
        grids = late_ranks.read(recording, *span)
        told = steps(recording, *span)
        late = [one for grid in grids for one in late_ranks.late(grid, told)]
        return late, [one for grid in grids for one in late_ranks.all_wait(grid)]


def late_one(rank: int, from_s: float, to_s: float, what: str = "data") -> Away:
    """Steps of half a second: everybody computes for a tenth; the late one is elsewhere for three."""

    def away(mine: int, look: int) -> str:
        if mine == rank and from_s <= look / 10 < to_s and look % 5 < 4:
            return what
        return "evaluate" if look % 5 == 0 else "collective"

    return away


@pytest.mark.parametrize("rank", [0, 3])
def test_the_one_that_is_elsewhere_while_all_others_wait_is_late(rank: int, tmp_path: Path) -> None:
    (one,), _ = found(job(late_one(rank, 10, 30)), tmp_path)
    assert (one.rank.rank, one.others, one.state, one.is_stuck) == (rank, 3, "data", False)
    assert one.late_s == pytest.approx(12, abs=1)
    assert one.times == pytest.approx(40, abs=4)
    assert one.from_us == pytest.approx(at(10), abs=SECOND)
    assert one.to_us == pytest.approx(at(30), abs=SECOND)
    assert (one.place, one.wait_place) == ("_BaseDataLoaderIter.__next__, train.py:12", "all_reduce, train.py:14")


@pytest.mark.parametrize("seed", range(20))
def test_batches_of_uneven_sizes_name_nobody(seed: int, tmp_path: Path) -> None:
    # GIVEN steps in which each rank takes as long as its batch is, and the last one is another each time
    drawn = random.Random(seed)
    takes = {step: [drawn.randint(1, 4) for _ in range(4)] for step in range(100)}

    def away(rank: int, look: int) -> str:
        return "data" if look % 5 < takes[look // 5][rank] else "collective"

    assert found(job(away, seconds=40), tmp_path) == ([], [])


def test_two_ranks_that_wait_for_each_other_in_turn_name_nobody(tmp_path: Path) -> None:
    late, _ = found(job(lambda rank, look: "data" if (look // 3) % 2 == rank else "collective", ranks=2), tmp_path)
    assert late == []


def test_a_hang_names_the_rank_that_is_elsewhere(tmp_path: Path) -> None:
    def away(rank: int, look: int) -> str:
        if look < 150:
            return "step" if look % 5 == 0 else "collective"
        return "evaluate" if rank == 1 else "collective"

    (one,), every = found(job(away, seconds=50), tmp_path)
    assert (one.rank.rank, one.is_stuck, one.state) == (1, True, "other")
    assert one.late_s == pytest.approx(35, abs=1)
    assert every == []


def test_where_all_ranks_wait_the_missing_one_is_on_another_node(tmp_path: Path) -> None:
    made = job(lambda _, look: "step" if look % 5 == 0 and look < 100 else "collective", ranks=2, seconds=50)
    for rank in range(2):
        made.rank(800 + rank, rank, world_size=16)
    late, (every,) = found(made, tmp_path)
    assert late == []
    assert (every.ranks, every.missing, every.place) == (2, 14, "all_reduce, train.py:14")
    assert every.seconds == pytest.approx(40, abs=2)


def test_a_rank_that_was_not_looked_at_is_not_late(tmp_path: Path) -> None:
    late, _ = found(job(lambda rank, look: "" if rank == 2 else "collective" if look % 5 else "step"), tmp_path)
    assert late == []


def test_a_rank_that_two_processes_claim_is_not_judged(tmp_path: Path) -> None:
    made = job(late_one(1, 10, 30))
    made.rank(900, 1, world_size=4).does(900, "data", 0, 40)
    late, _ = found(made, tmp_path)
    assert [one.rank.pid for one in late if one.rank.pid in (801, 900)] == []


def test_ranks_of_another_user_are_another_job(tmp_path: Path) -> None:
    made = job(late_one(1, 10, 30))
    made.rank(900, 1, world_size=4, uid=66).does(900, "collective", 0, 40)
    (one,), _ = found(made, tmp_path)
    assert one.rank.pid == 801


def test_a_rank_that_died_holds_nobody_up(tmp_path: Path) -> None:
    made = job(lambda rank, look: "step" if look % 5 == 0 or (rank == 3 and look < 150) else "collective")
    made.node.add(
        "ranks", time=at(15), pid=803, start_ticks=1, rank=3, world_size=4, job="7", kind="slurm", uid=1, ended=1
    )
    late, _ = found(made, tmp_path)
    assert all(one.to_us <= at(16) for one in late)


@pytest.mark.parametrize("what", ["save"])
def test_a_rank_that_saves_a_checkpoint_says_so(what: str, tmp_path: Path) -> None:
    (one,), _ = found(job(late_one(0, 10, 30, what)), tmp_path)
    assert one.phase == "checkpoint"


def test_delays_are_told_by_step_where_the_program_reports_steps(tmp_path: Path) -> None:
    made = job(late_one(2, 10, 30))
    for rank in range(4):
        for second in range(40):
            made.node.add("steps", time=at(second), pid=800 + rank, rank=rank, first=2 * second, took_us=(500_000,) * 2)
    (one,), _ = found(made, tmp_path)
    assert one.steps == pytest.approx(40, abs=2)
    assert one.delay_s == pytest.approx(0.3, abs=0.05)


def test_jobs_are_named_by_who_started_them(tmp_path: Path) -> None:
    made = Node()
    for pid, kind, name, uid in ((1, "slurm", "7.0", 1), (2, "torchrun", "llama", 1), (3, "torch", None, 1)):
        made.add("ranks", time=at(0), pid=pid, start_ticks=1, rank=0, kind=kind, job=name, uid=uid, ppid=44, ended=0)
    made.core(at(10), 0)
    write_segment(tmp_path, made.tables)
    with open_recording(tmp_path) as recording:
        found = jobs(recording, at(0), at(10))
    assert [one.id for one in found] == ["slurm/7.0", "torch/children of 44", "torchrun/llama"]
    assert found[0].is_called("7.0")
    assert not found[0].is_called("7")
