"""One job over several nodes whose clocks differ: one axis, and the rank that was late among all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.helpers.cli import Cli
from tests.helpers.made import SECOND, write_segment
from tests.unit.query.test_gpu_account import Trainer, at

from zombiescope.query.job_report import JobReport, of_node, together
from zombiescope.store.reader import open_recording

SECONDS = 60
LATE = 5


def write(place: Path, node: str, ranks: range, ahead_s: float, *, with_steps: bool = False, late: int = LATE) -> None:
    """A node whose clock is ahead. Steps of 1 to 2.2 s, so that their pattern can be found again; from second 20 on the
    late rank is elsewhere for most of each."""
    made = Trainer(gpus=0)
    drawn = random.Random(7)
    lengths = [drawn.randint(10, 22) for _ in range(80)]
    for rank in ranks:
        made.rank(800 + rank, rank, world_size=8, time=at(ahead_s - 60))
        look = 0
        for step, length in enumerate(lengths):
            if look >= SECONDS * 10:
                break
            busy = length - 2 if rank == late and look >= 200 else 2
            begins, ends = look / 10 + ahead_s, (look + length) / 10 + ahead_s
            made.does(800 + rank, "data", begins, begins + busy / 10)
            made.does(800 + rank, "collective", begins + busy / 10, ends)
            if with_steps:
                took = (length * SECOND // 10,)
                made.node.add("steps", time=at(begins), pid=800 + rank, rank=rank, first=step, took_us=took)
            look += length
    write_segment(place, made.node.tables, node=node)


def report(place: Path) -> JobReport:
    found = []
    for node in ("a", "b"):
        with open_recording(place, node) as recording:
            found += of_node(recording, "7", recording.start_us, recording.end_us)
    return together(found)


@pytest.mark.parametrize("ahead_s", [0.0, 3.7, 12.4])
@pytest.mark.parametrize("with_steps", [False, True], ids=["collectives", "steps"])
def test_ranks_of_two_nodes_are_compared_whatever_their_clocks_say(
    ahead_s: float, with_steps: bool, tmp_path: Path
) -> None:
    write(tmp_path, "a", range(4), 0.0, with_steps=with_steps)
    write(tmp_path, "b", range(4, 8), ahead_s, with_steps=with_steps)
    made = report(tmp_path)
    assert made.nodes[1].clock_offset_s == pytest.approx(ahead_s, abs=0.001 if with_steps else 0.11)
    assert made.nodes[1].by == ("steps" if with_steps else "collectives")
    (late,) = made.late
    assert (late.rank, late.node, late.state) == (LATE, "b", "data")
    assert late.late_s == pytest.approx(30, abs=4)
    assert made.ranks[0].rank == LATE
    assert (made.job, made.world_size, len(made.ranks)) == ("slurm/7", 8, 8)


def test_steps_that_are_all_alike_tell_no_offset(tmp_path: Path) -> None:
    for node, ranks in (("a", range(2)), ("b", range(2, 4))):
        made = Trainer(gpus=0)
        for rank in ranks:
            made.rank(800 + rank, rank, world_size=4)
            for step in range(SECONDS):
                made.does(800 + rank, "step", step, step + 0.3).does(800 + rank, "collective", step + 0.3, step + 1)
        write_segment(tmp_path, made.node.tables, node=node)
    assert report(tmp_path).nodes[1].clock_offset_s is None


def test_a_job_without_a_late_rank_names_nobody(tmp_path: Path) -> None:
    for node, ranks, ahead_s in (("a", range(4), 0.0), ("b", range(4, 8), 2.3)):
        write(tmp_path, node, ranks, ahead_s, late=-1)
    assert report(tmp_path).late == []


def test_the_command_says_who_and_on_which_node(tmp_path: Path) -> None:
    write(tmp_path / "fleet", "a", range(4), 0.0)
    write(tmp_path / "fleet", "b", range(4, 8), 3.7)
    found = Cli(tmp_path)("fleet", "job", "fleet", "--job", "slurm/7", "--json").document
    assert found["schema"] == "zombiescope.fleet.job/1"
    assert [(one["rank"], one["node"]) for one in found["late"]] == [(LATE, "b")]
    done = Cli(tmp_path)("fleet", "job", "fleet", "--job", "7")
    assert done.code == 0
    assert f"rank {LATE} on b" in done.out


def test_a_job_that_nobody_knows_and_one_whose_name_is_local_are_refused(tmp_path: Path) -> None:
    for node in ("a", "b"):
        made = Trainer(gpus=0)
        made.rank(1, 0, kind="torch", job="127.0.0.1:29500").rank(2, 1, kind="torch", job="127.0.0.1:29500")
        made.does(1, "collective", 0, 5).does(2, "step", 0, 5)
        write_segment(tmp_path / "fleet", made.node.tables, node=node)
    assert Cli(tmp_path)("fleet", "job", "fleet", "--job", "9").code == 1
    done = Cli(tmp_path)("fleet", "job", "fleet", "--job", "127.0.0.1:29500")
    assert done.code == 1
    assert "Traceback" not in done.err


def test_diagnose_finds_a_job_by_its_name(tmp_path: Path) -> None:
    write(tmp_path / "rec", "a", range(4, 8), 0.0)
    for option, name in (("--job", "slurm/7"), ("--slurm-job", "7")):
        found = Cli(tmp_path)("diagnose", "rec", option, name, "--json").document
        causes = [one["causes"][0] for one in found["incidents"]]
        assert [(one["pattern"], one["culprit"]["pid"]) for one in causes] == [("late-rank", 800 + LATE)]
    assert Cli(tmp_path)("diagnose", "rec", "--job", "slurm/8").code == 1
