"""A storm has one culprit however it is cut into windows, although its pids are used again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import HZ, SECOND, START_US, Node, write_segment

from zombiescope.diagnosis.ancestry import Ancestry
from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.sample_index import NOBODY, SampledTask
from zombiescope.store.reader import open_recording

SECONDS = 20
BOOT_TICKS = 500_000
FORK = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__do_sys_clone", "kernel_clone", "copy_process", "dup_mm")
EXIT = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "do_exit", "exit_mmap", "unmap_vmas")
EXEC = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__x64_sys_execve", "do_execveat_common", "load_elf_binary")


def ticks(at_us: int) -> int:
    return BOOT_TICKS + (at_us - START_US) * 100 // SECOND


class Storm:
    """Twenty seconds of one core in fork, exec and exit; half of the samples are of who forks."""

    def __init__(self, seconds: int = SECONDS) -> None:
        self.node = Node()
        self.at_us = [START_US + tick * SECOND // HZ for tick in range(seconds * HZ)]
        rate = self.node.series("stat", "processes")
        for second in range(seconds):
            end_us = START_US + (second + 1) * SECOND
            self.node.count(end_us, rate, 2_000)
            for cpu in range(2):
                self.node.core(end_us, cpu, system=980 if cpu else 10, user=10, samples=HZ, expected_samples=HZ)

    def sample(self, at_us: int, task: int, frames: tuple[str, ...]) -> None:
        self.node.sample(at_us, 1, task, self.node.stack([self.node.frame(name) for name in frames]))

    def write(self, directory: Path) -> Path:
        write_segment(directory, self.node.tables, kernel="6.1.0")
        return directory


def stress(directory: Path, *, known_starts: bool = True) -> Path:
    """stress-ng --fork 1: a worker that forks children of its own name. Its own pid and those of its children are used
    again later, by a `tr` of a script and by runc."""
    storm = Storm()
    started = {"start_ticks": BOOT_TICKS - 900} if known_starts else {}
    storm.node.task(900, "load.sh", ppid=1, **({"start_ticks": 100} if known_starts else {}))
    main = storm.node.task(4000, "stress-ng", ppid=900, **started)
    worker = storm.node.task(4001, "stress-ng-fork", ppid=4000, **started)
    storm.sample(storm.at_us[0], main, FORK)
    for number, at_us in enumerate(storm.at_us[1:]):
        own = {"start_ticks": ticks(at_us)} if known_starts else {}
        if number % 2:
            storm.sample(at_us, worker, FORK)
        else:
            pid = 5000 + number % 300
            storm.sample(at_us, storm.node.task(pid, "stress-ng-fork", ppid=4001, **own), EXIT)
    for number, (pid, comm, ppid) in enumerate([(4001, "tr", 900), (4000, "runc", 901), (5000, "bash", 1)]):
        start = {"start_ticks": BOOT_TICKS + 10_000 + number} if known_starts else {}
        storm.node.task(pid, comm, ppid=ppid, **start)
    return storm.write(directory)


def six_in_a_row(directory: Path) -> Path:
    """A script that runs stress-ng six times, for three seconds each: six workers of one name."""
    storm = Storm()
    storm.node.task(900, "load.sh", ppid=1, start_ticks=100)
    for number, at_us in enumerate(storm.at_us):
        turn = number // (3 * HZ)
        born = ticks(START_US + turn * 3 * SECOND)
        storm.node.task(4000 + 10 * turn, "stress-ng", ppid=900, start_ticks=born)
        worker = storm.node.task(4001 + 10 * turn, "stress-ng-fork", ppid=4000 + 10 * turn, start_ticks=born)
        own = {"ppid": 4001 + 10 * turn, "start_ticks": ticks(at_us)}
        child = storm.node.task(5000 + number % 300, "stress-ng-fork", **own)
        storm.sample(at_us, worker if number % 2 else child, FORK if number % 2 else EXIT)
    return storm.write(directory)


def nested(directory: Path) -> Path:
    """A loop that starts a shell which starts `tr` thirty times, and then another shell: each lives for 1.5 s."""
    storm = Storm()
    loop = storm.node.task(4000, "load.sh", ppid=1, start_ticks=BOOT_TICKS - 900)
    storm.sample(storm.at_us[0], loop, FORK)
    for number, at_us in enumerate(storm.at_us[1:]):
        turn = number // 150
        born = ticks(START_US + turn * 150 * SECOND // HZ)
        shell = storm.node.task(6000 + turn, "sh", ppid=4000, start_ticks=born)
        if number % 10 == 0:
            storm.sample(at_us, shell, FORK)
        else:
            child = storm.node.task(7000 + number % 500, "tr", ppid=6000 + turn, start_ticks=ticks(at_us))
            storm.sample(at_us, child, EXEC)
    return storm.write(directory)


def culprits(directory: Path, window_s: int) -> list[Actor | None]:
    """The first cause of each window's fork storm."""
    found = []
    with open_recording(directory) as recording:
        for start_s in range(0, SECONDS, window_s):
            start_us = START_US + start_s * SECOND
            diagnosis = diagnose(recording, start_us, start_us + window_s * SECOND)
            causes = [one.causes[0] for one in diagnosis.incidents if one.causes]
            found += [cause.culprit for cause in causes if cause.pattern == "fork-storm"]
    return found


@pytest.mark.parametrize("window_s", [2, 5, 20])
@pytest.mark.parametrize("known_starts", [True, False])
def test_a_storm_has_one_culprit_however_it_is_cut(tmp_path: Path, window_s: int, known_starts: bool) -> None:
    named = culprits(stress(tmp_path, known_starts=known_starts), window_s)
    assert len(named) >= SECONDS // window_s
    assert {(who.comm, who.pid) for who in named if who is not None} == {("stress-ng-fork", 4001)}
    assert None not in named


@pytest.mark.parametrize("window_s", [2, 5, 20])
def test_a_parent_that_is_a_short_lived_child_itself_is_passed_over(tmp_path: Path, window_s: int) -> None:
    named = culprits(nested(tmp_path), window_s)
    assert named
    assert {(who.comm, who.pid) if who else None for who in named} == {("load.sh", 4000)}


@pytest.mark.parametrize("window_s", [2, 5, 20])
def test_storms_in_a_row_are_one_programs(tmp_path: Path, window_s: int) -> None:
    named = culprits(six_in_a_row(tmp_path), window_s)
    assert named
    assert {who.comm if who else None for who in named} == {"stress-ng-fork"}


# --- parents ---------------------------------------------------------------------------------------------------------


def task(pid: int, comm: str, ppid: int | None, start: int | None, tid: int | None = None) -> SampledTask:
    return SampledTask(pid, pid if tid is None else tid, comm, ppid, *(None,) * 6, start)


def test_a_parent_was_started_before_its_child() -> None:
    tasks = {
        1: task(50, "worker", 40, 1_000),
        2: task(60, "child", 50, 2_000),
        3: task(50, "tr", 900, 3_000),
        4: task(61, "other", 50, 4_000),
    }
    ancestry = Ancestry(tasks)
    assert ancestry.parent_of(tasks[2]) == tasks[1]
    assert ancestry.parent_of(tasks[4]) == tasks[3]


def test_without_times_the_order_in_which_they_were_seen_counts() -> None:
    tasks = {
        1: task(50, "worker", 40, None),
        2: task(60, "child", 50, None),
        3: task(50, "tr", 900, None),
        4: task(61, "other", 50, None),
    }
    ancestry = Ancestry(tasks)
    assert ancestry.parent_of(tasks[2]) == tasks[1]
    assert ancestry.parent_of(tasks[4]) == tasks[3]


def test_one_that_is_never_sampled_is_not_replaced_by_a_later_one_of_its_pid() -> None:
    tasks = {1: task(60, "child", 50, 2_000), 2: task(50, "tr", 900, 3_000)}
    assert Ancestry(tasks).parent_of(tasks[1]) is None


def test_a_circle_of_parents_ends() -> None:
    tasks = {1: task(50, "a", 60, None), 2: task(60, "b", 50, None)}
    assert len(Ancestry(tasks).line(1)) <= 3


def test_a_process_that_was_renamed_goes_by_its_last_name() -> None:
    tasks = {1: task(50, "stress-ng", 40, 1_000), 2: task(50, "stress-ng-fork", 40, 1_000), 3: task(60, "x", 50, 1_100)}
    assert Ancestry(tasks).parent_of(tasks[3]) == tasks[2]


def test_a_task_that_nobody_knows_has_no_line() -> None:
    assert Ancestry({1: NOBODY}).line(1) == ()
