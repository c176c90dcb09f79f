"""Who is asked again, and when: a task is moved, renamed and given its priority after it was first seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from zombiescope.kernel.cgroup_path import Owner
from zombiescope.kernel.process import Process
from zombiescope.recorder import sample_writer as module
from zombiescope.recorder.lookup import TaskAnswer, TaskQuestion
from zombiescope.recorder.sample_writer import HOT_AGAIN_NS, MAX_CGROUP_PATHS, SETTLED_NS, SampleWriter
from zombiescope.store import schema
from zombiescope.store.batch import Batch

SECOND_NS = 1_000_000_000


class Rows(Batch):
    """What was written, by table."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[dict[str, Any]] = []

    def add(self, table: schema.Table, row: tuple[Any, ...]) -> None:
        self.kept.append(dict(zip(table.names, row, strict=True)))


@dataclass
class StandInSampler:
    """What the native sampler hands over: one task, seen once, and its share of every second."""

    samples_a_second: int = 90
    born_ns: int | None = None
    forked_by: int | None = 1
    cgroup_id: int = 0

    def take_cgroups(self) -> list[Any]:
        return []

    def take_tasks(self) -> list[Any]:
        return [(7, 500, 500, "loop", self.forked_by, self.cgroup_id, self.born_ns)]

    def take_shares(self) -> list[tuple[int, int, int]]:
        return [(7, self.samples_a_second, 0)]

    @property
    def rows(self) -> StandInSampler:
        return self

    def take_wanted(self) -> list[Any]:
        return []


@dataclass
class StandInLookup:
    asked: list[TaskQuestion] = field(default_factory=list)
    answers: list[TaskAnswer] = field(default_factory=list)

    def ask(self, question: TaskQuestion) -> None:
        self.asked.append(question)

    def take(self) -> list[TaskAnswer]:
        answers, self.answers = self.answers, []
        return answers


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    clock = [1000 * SECOND_NS]
    monkeypatch.setattr(module, "monotonic_ns", lambda: clock[0])
    return clock


def made(sampler: StandInSampler, lookup: StandInLookup) -> SampleWriter:
    samples = SampleWriter(sampler, lookup, Rows())  # type: ignore[arg-type]
    samples.ask()
    return samples


def test_a_young_task_is_asked_again_when_it_has_settled(now: list[int]) -> None:
    sampler, lookup = StandInSampler(samples_a_second=3), StandInLookup()
    samples = made(sampler, lookup)
    list(samples.shares())
    assert len(lookup.asked) == 1
    for _ in range(10):
        now[0] += SETTLED_NS
        list(samples.shares())
    assert [one.comm for one in lookup.asked] == ["loop", None], "once more, and its name anew"


def test_a_hot_task_is_asked_every_five_seconds(now: list[int]) -> None:
    sampler, lookup = StandInSampler(), StandInLookup()
    samples = made(sampler, lookup)
    for _ in range(20):
        now[0] += SECOND_NS
        list(samples.shares())
    assert len(lookup.asked) == 2 + (20 * SECOND_NS - 2 * SECOND_NS) // HOT_AGAIN_NS


def test_a_task_that_became_real_time_is_told(now: list[int]) -> None:
    sampler, lookup = StandInSampler(), StandInLookup()
    samples = made(sampler, lookup)
    assert not next(samples.shares()).real_time
    fifo = Process(500, 1, "loop", "R", False, 1, 10, 1, None, False, None, {})
    samples._name_task(TaskAnswer(lookup.asked[0], fifo, "/", Owner(), "loop"))
    assert next(samples.shares()).real_time


def test_the_cgroup_that_limits_its_cpu_is_told_where_it_is_another(now: list[int]) -> None:
    sampler, lookup = StandInSampler(), StandInLookup()
    samples = made(sampler, lookup)
    samples._name_task(TaskAnswer(lookup.asked[0], None, "/system.slice", Owner(), "loop", "/system.slice/a.service"))
    share = next(samples.shares())
    assert (share.cgroup, share.cpu_cgroup) == ("/system.slice", "/system.slice/a.service")


def test_one_that_is_gone_keeps_its_first_answer(now: list[int]) -> None:
    sampler, lookup = StandInSampler(), StandInLookup()
    samples = made(sampler, lookup)
    samples._name_task(TaskAnswer(lookup.asked[0], None, "/job", Owner(unit="a.service"), "loop"))
    samples._name_task(TaskAnswer(lookup.asked[0], None, None, Owner(), "loop"))
    assert next(samples.shares()).name == "a.service"


def test_the_path_of_a_cgroup_is_known_as_long_as_somebody_comes_from_it(now: list[int]) -> None:
    sampler, lookup = StandInSampler(cgroup_id=1), StandInLookup()
    samples = made(sampler, lookup)
    samples.cgroup_exists(1, "/pod")
    for number in range(2, 3 * MAX_CGROUP_PATHS):
        samples.cgroup_exists(number, f"/job-{number}")
        if number % 1000 == 0:
            samples.ask()
    assert lookup.asked[-1].cgroup_hint == "/pod"
    assert len(samples._cgroup_paths) == MAX_CGROUP_PATHS
    assert 3 * MAX_CGROUP_PATHS - 1 in samples._cgroup_paths


# --- pids that are used again ---------------------------------------------------------------------------------------


def last_row(samples: SampleWriter) -> dict[str, Any]:
    return cast("Rows", samples._batch).kept[-1]


def process_of(ppid: int, start_ticks: int) -> Process:
    return Process(500, ppid, "loop", "R", False, start_ticks, 0, 0, None, False, None, {})


def test_who_forked_it_counts_more_than_whom_proc_names_as_its_parent(now: list[int]) -> None:
    # GIVEN a child whose parent is gone, so that /proc says pid 1
    lookup = StandInLookup()
    samples = made(StandInSampler(forked_by=4001), lookup)
    samples._name_task(TaskAnswer(lookup.asked[0], process_of(1, 77), "/", Owner(), "loop"))
    assert (last_row(samples)["ppid"], last_row(samples)["start_ticks"]) == (4001, 77)


def test_whose_fork_was_not_seen_has_the_parent_that_proc_names(now: list[int]) -> None:
    lookup = StandInLookup()
    samples = made(StandInSampler(forked_by=None), lookup)
    samples._name_task(TaskAnswer(lookup.asked[0], process_of(33, 77), "/", Owner(), "loop"))
    assert last_row(samples)["ppid"] == 33


def test_a_fork_tells_when_it_was_started(now: list[int]) -> None:
    lookup = StandInLookup()
    samples = made(StandInSampler(born_ns=5 * SECOND_NS), lookup)
    first = last_row(samples)["start_ticks"]
    assert first is not None
    assert lookup.asked[0].start_ticks == first
    samples._name_task(TaskAnswer(lookup.asked[0], None, None, Owner(), "loop"))
    assert last_row(samples)["start_ticks"] == first, "it was gone before it could be asked"


def test_when_it_is_asked_again_its_start_is_known(now: list[int]) -> None:
    lookup = StandInLookup()
    samples = made(StandInSampler(), lookup)
    samples._name_task(TaskAnswer(lookup.asked[0], process_of(1, 77), "/", Owner(), "loop"))
    now[0] += SETTLED_NS
    list(samples.shares())
    assert lookup.asked[-1].start_ticks == 77
