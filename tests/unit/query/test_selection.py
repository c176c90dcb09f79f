"""Which samples a window and filters choose."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.helpers.made import Node, Sample, Task, opened, write
from tests.helpers.recordings import SECOND, START_US, write_segment

from zombiescope.query.selection import EVERYTHING, Filters, Selection
from zombiescope.store.reader import Recording, open_recording

KUBELET = Task(12, 13, "kubelet", "kubelet.service")
WORKER = Task(40, 41, "kworker/3:1-mm")
BOXED = Task(50, 50, "python3", "kubepods.slice", "3f1c" * 16)

SAMPLES = (
    Sample(10, "main;[k]vfs_read", 0, KUBELET),
    Sample(20, "[k]worker_thread;[k]drain", 1, WORKER),
    Sample(30, "main;forward", 1, BOXED),
    Sample(40, None, 2, BOXED),
    Sample(50, "main;[k]vfs_read", 3, None),
)


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return opened(tmp_path, *SAMPLES)


def times(recording: Recording, filters: Filters, start_us: int = 0, end_us: int = SECOND) -> list[int]:
    selection = Selection(recording, START_US + start_us, START_US + end_us, filters)
    return [time - START_US for rows in selection.batches() for time in rows.time_us.tolist()]


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        (EVERYTHING, [10, 20, 30, 40, 50]),
        (Filters(cpus=frozenset({1, 3})), [20, 30, 50]),
        (Filters(pids=frozenset({12})), [10]),
        (Filters(tids=frozenset({41, 50})), [20, 30, 40]),
        (Filters(comms=("kworker/3:1-mm",)), [20]),
        (Filters(comms=("k*",)), [10, 20]),
        (Filters(units=("*.service",)), [10]),
        (Filters(containers=("3f1c3f1c3f1c",)), [30, 40]),
        (Filters(mode="kernel"), [10, 20, 50]),
        (Filters(mode="user"), [30]),
        (Filters(match=re.compile("^vfs_")), [10, 50]),
        (Filters(match=re.compile("libwork")), []),
        (Filters(cpus=frozenset({1}), mode="kernel"), [20]),
    ],
)
def test_each_filter_keeps_whole_samples(recording: Recording, filters: Filters, kept: list[int]) -> None:
    with recording:
        assert times(recording, filters) == kept


def test_a_window_has_its_start_and_not_its_end(recording: Recording) -> None:
    with recording:
        assert times(recording, EVERYTHING, 20, 50) == [20, 30, 40]


def test_a_filter_holds_over_parts_that_number_their_ids_anew(tmp_path: Path) -> None:
    write(tmp_path, [Sample(10, "main;a", 0, KUBELET)])
    write(tmp_path, [Sample(10, "x;a", 0, BOXED), Sample(20, "main;b", 0, KUBELET)], start_us=START_US + SECOND, seq=1)
    with open_recording(tmp_path) as recording:
        assert times(recording, Filters(comms=("kubelet",)), 0, 2 * SECOND) == [10, SECOND + 20]
        assert times(recording, Filters(match=re.compile("^a$")), 0, 2 * SECOND) == [10, SECOND + 10]
        assert times(recording, Filters(match=re.compile("^b$")), SECOND, 2 * SECOND) == [SECOND + 20]


def test_a_stack_is_the_same_in_every_part(tmp_path: Path) -> None:
    for second in range(3):
        write(
            tmp_path,
            [Sample(10, f"only{second};main"), Sample(20, "main;a")],
            start_us=START_US + second * SECOND,
            seq=second,
        )
    with open_recording(tmp_path) as recording:
        known = Selection(recording, START_US, START_US + 3 * SECOND).stacks
        assert [function.name for function in known.functions].count("main") == 1


def test_the_last_row_of_a_task_says_who_it_is(tmp_path: Path) -> None:
    # GIVEN a shell that became python
    tasks = [(0, 7, 7, comm, *[None] * 11) for comm in ("bash", "python3")]
    write_segment(tmp_path, {"tasks": tasks, "samples": [(START_US + 10, 0, 0, None, None)]})
    # THEN its samples are python's only
    with open_recording(tmp_path) as recording:
        assert times(recording, Filters(comms=("python3",))) == [10]
        assert times(recording, Filters(comms=("bash",))) == []


def test_only_the_columns_asked_for_come_also_with_filters_on_others(recording: Recording) -> None:
    with recording:
        selection = Selection(recording, START_US, START_US + SECOND, Filters(cpus=frozenset({1}), mode="kernel"))
        assert [len(columns) for columns in selection.columns("time")] == [1]
        assert [time.tolist() for (time,) in selection.columns("time")] == [[START_US + 20]]


POD_UID = "0c7f1e2a-0000-4444-8888-123456789abc"


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        (Filters(containers=("agent",)), [10]),
        (Filters(containers=("ecs-agent",)), [10]),
        (Filters(containers=("aaaa",)), [10]),
        (Filters(images=("ecs-agent",)), [10]),
        (Filters(images=("trainer:2", "ecs-agent:1.2")), [10, 20]),
        (Filters(pods=("train-0",)), [20, 30]),
        (Filters(pods=("ml/train-*",)), [20, 30]),
        (Filters(pods=("default/train-0",)), []),
        (Filters(pods=(POD_UID,)), [20, 30]),
        (Filters(pods=("train-0",), images=("trainer",)), [20]),
        (Filters(pods=("train-0",), containers=("agent",)), []),
        (Filters(pods=("*",)), [20, 30]),
    ],
)
def test_containers_and_pods_are_meant_by_name(tmp_path: Path, filters: Filters, kept: list[int]) -> None:
    """The third sample is of the pod's sandbox, which has no row of its own."""
    node = Node()
    ids = ["aaaa" * 16, "bbbb" * 16, "cccc" * 16]
    pods = [None, POD_UID, POD_UID]
    for number, (identity, pod) in enumerate(zip(ids, pods, strict=True)):
        task = node.task(50 + number, "python3", container=identity, pod=pod)
        node.sample(START_US + 10 * (number + 1), 0, task, node.stack([node.frame("work", "user")]))
    node.sample(START_US + 40, 0, node.task(60, "bash"), node.stack([node.frame("work", "user")]))
    node.container(START_US, ids[0], name="agent", image="registry.local/ecs-agent:1.2")
    node.container(START_US, ids[1], name="main", image="trainer:2", pod="train-0", namespace="ml", pod_uid=POD_UID)
    write_segment(tmp_path, node.tables)
    with open_recording(tmp_path) as recording:
        assert times(recording, filters) == kept
