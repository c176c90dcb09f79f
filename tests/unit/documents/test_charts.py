"""Charts of disks, network and memory; Python lanes with main threads first, named by their programs."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US, Node, write_segment

from zombiescope.documents import lanes
from zombiescope.query.programs import program, rank
from zombiescope.questions.filters import FilterQuestion
from zombiescope.questions.window import Window
from zombiescope.store.reader import open_recording


def ticking(seconds: int, without: int | None = None) -> Node:
    node = Node()
    for second in range(seconds):
        if second != without:
            node.core(START_US + second * SECOND + SECOND // 2, 0, user=5)
    return node


def document(node: Node, directory: Path, seconds: int = 6, **options: Any) -> dict[str, Any]:
    write_segment(directory, node.tables)
    with open_recording(directory) as recording:
        return lanes.document(recording, Window(START_US, START_US + seconds * SECOND, UTC), 100, **options)


def chart(found: dict[str, Any], name: str) -> dict[str, list[float | None]]:
    return {line["name"]: line["values"] for one in found["charts"] if one["name"] == name for line in one["lines"]}


def test_a_step_without_a_tick_has_no_traffic_and_a_quiet_one_has_none_of_it(tmp_path: Path) -> None:
    # GIVEN two disks, a device-mapper volume on top of one, and no tick in the fourth second
    node = ticking(6, without=3)
    for device, read in (("sda", 1000), ("nvme0n1", 500), ("dm-0", 1000)):
        node.add(
            "disks", time=START_US + SECOND + 1, interval_us=SECOND, device=device, read_bytes=read, written_bytes=0
        )
    received = node.series("netdev", "rx_bytes", "eth0")
    node.series("netdev", "tx_bytes", "eth0")
    node.count(START_US + 2 * SECOND + 1, received, 7_000)
    found = document(node, tmp_path)
    # THEN what the volume passed on is counted once
    assert chart(found, "disk")["read"] == [0, 1500, 0, None, 0, 0]
    assert chart(found, "network") == {"received": [0, 0, 7000, None, 0, 0], "sent": [0, 0, 0, None, 0, 0]}
    assert chart(found, "memory") == {}


def test_memory_holds_its_last_reading_also_from_before_the_window(tmp_path: Path) -> None:
    node = ticking(6, without=3)
    total, available = (
        node.series("meminfo", name, kind="gauge") for name in ("mem_total_bytes", "mem_available_bytes")
    )
    node.count(START_US + 100, total, 1000)
    node.count(START_US + 100, available, 750)
    node.count(START_US + 2 * SECOND + 1, available, 100)
    write_segment(tmp_path, node.tables)
    with open_recording(tmp_path) as recording:
        window = Window(START_US + SECOND, START_US + 6 * SECOND, UTC)
        found = lanes.document(recording, window, 100)
    assert chart(found, "memory")["used"] == [0.25, 0.9, None, 0.9, 0.9]


@pytest.mark.parametrize(
    ("cmdline", "name", "number"),
    [
        ("/usr/bin/python3 -u train.py --rank 3", "train.py", 3),
        ("python3.11 -X dev -m torch.distributed.run --local_rank=12 x.py", "torch.distributed.run", 12),
        ("/opt/conda/bin/python /job/jx.py", "jx.py", None),
        ("python3 -c import this", None, None),
        ("bash -x /opt/run.sh", "run.sh", None),
        ("kubelet --config x.py", None, None),
        ("python3", None, None),
        (None, None, None),
    ],
)
def test_an_interpreter_is_named_by_what_it_runs(cmdline: str | None, name: str | None, number: int | None) -> None:
    assert program(cmdline) == name
    assert rank(cmdline) == number


@pytest.fixture
def training(tmp_path: Path) -> Node:
    """Two programs: one on a GPU with busy feeder threads, and another without; of each a main thread that waits."""
    node = ticking(6)
    main, load = (
        node.frame(name, "python", file) for name, file in (("<module>", "/job/jx.py"), ("load", "/job/jx.py"))
    )
    deep = node.frame("_bootstrap", "python", "/usr/lib/python3.11/threading.py")
    node.task(1859, "python3", cmdline="/usr/bin/python3 /job/jx.py --rank 1", unit="job.service")
    node.task(2000, "python3", cmdline="/usr/bin/python3 /job/other.py")
    for tid in (1877, 1878, 1879, 1880):
        for second in range(5):
            node.python(
                START_US + second * SECOND, pid=1859, task_tid=tid, frames=[deep, load], lines=[1, 9], comm="feeder"
            )
    node.python(START_US + SECOND, pid=1859, task_tid=1859, frames=[main], lines=[20], comm="python3", state="S")
    for second in (1, 2):
        node.python(START_US + second * SECOND, pid=2000, task_tid=2000, frames=[main], lines=[3], comm="python3")
    node.gpu(START_US + 1, 0)
    node.gpu_process(START_US + SECOND, 0, 1859, "python3")
    return node


def test_the_main_thread_of_the_process_on_a_gpu_is_the_first_lane(training: Node, tmp_path: Path) -> None:
    found = document(training, tmp_path / "rec")
    assert [each["tid"] for each in found["python"]] == [1859, 2000, 1877, 1878]
    first = found["python"][0]
    assert (first["program"], first["rank"], first["main"], first["gpu"]) == ("jx.py", 1, True, True)
    assert found["python_left_out"] == 2


@pytest.mark.parametrize(
    ("filters", "tids"),
    [
        (FilterQuestion(tid=(1879,)), [1879]),
        (FilterQuestion(pid=(2000,)), [2000]),
        (FilterQuestion(comm=("feed*",)), [1877, 1878, 1879, 1880]),
        (FilterQuestion(unit=("job.*",)), [1859, 1877, 1878, 1879, 1880]),
    ],
    ids=["thread", "process", "name", "unit"],
)
def test_lanes_of_python_obey_the_filters(
    training: Node, tmp_path: Path, filters: FilterQuestion, tids: list[int]
) -> None:
    found = document(training, tmp_path / "rec", filters=filters, threads=40)
    assert [each["tid"] for each in found["python"]] == tids
    assert found["python_left_out"] == 0


def test_step_times_are_a_lane_and_evaluation_is_not_in_it(tmp_path: Path) -> None:
    # GIVEN two ranks with steps of 0.4 s, one of them long, and an evaluation
    node = ticking(6)
    for number, took_us in ((0, (400_000, 400_000)), (1, (400_000, 1_200_000))):
        node.add("steps", time=START_US + SECOND + 1, pid=70 + number, rank=number, first=0, took_us=took_us)
    node.add("steps", time=START_US + 4 * SECOND + 1, pid=70, rank=0, first=9, phase="eval", took_us=(3_000_000,))
    found = chart(document(node, tmp_path), "step time")
    assert found["median"] == [None, 0.4, None, None, None, None]
    assert found["longest"] == [None, 1.2, None, None, None, None]
