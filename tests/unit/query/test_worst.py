"""The worst second, from a recording and frame by frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.boxes import TRAINER, TRAINER_UID, box_node
from tests.helpers.recordings import SECOND, START_US, WALK, write_recording, write_segment

from zombiescope.query.worst import Worst, WorstSecond, worst_second
from zombiescope.store import compact, schema
from zombiescope.store.log import LogFrame, SegmentReader
from zombiescope.store.reader import open_recording
from zombiescope.store.stacks import NamedFrame, hottest_path, kernel_path
from zombiescope.store.tail import Tail


def _frames(paths: tuple[Path, ...]) -> list[LogFrame]:
    frames: list[LogFrame] = []
    for path in paths:
        with path.open("rb") as file:
            frames += SegmentReader(file).frames()
    return frames


@pytest.mark.parametrize("compacted", [False, True])
def test_the_incident_is_found_with_who_and_where(tmp_path: Path, compacted: bool) -> None:
    written = write_recording(tmp_path, cpus=4)
    if compacted:
        compact.compact(written.node_dir)
    with open_recording(tmp_path) as recording:
        worst = worst_second(recording)
    assert worst
    assert written.incident
    assert worst.cpu == written.incident.cpu
    assert written.incident.from_us <= worst.from_us < worst.to_us <= written.incident.to_us
    assert (worst.kernel_ratio, worst.comm, worst.pid, worst.unit) == (
        1.0,
        "kubelet",
        1201,
        "kubelet.service",
    )
    assert worst.path == WALK  # a tenth of the samples ends in _raw_spin_unlock_irqrestore
    assert worst.task_ratio is not None
    assert worst.task_ratio > 0.95


def test_a_window_without_the_incident_has_another_worst_second(tmp_path: Path) -> None:
    written = write_recording(tmp_path)
    with open_recording(tmp_path) as recording:
        worst = worst_second(recording, START_US, START_US + 20 * SECOND)
    assert written.incident
    assert worst
    assert worst.to_us <= START_US + 20 * SECOND
    assert worst.kernel_ratio < 0.5


@pytest.mark.parametrize("segment_s", [60, 7])
def test_frame_by_frame_it_is_the_same(tmp_path: Path, segment_s: int) -> None:
    written = write_recording(tmp_path, cpus=4, segment_s=segment_s)
    live = WorstSecond()
    live.update(_frames(written.segments))
    with open_recording(tmp_path) as recording:
        recorded = worst_second(recording)
    assert live.worst
    assert recorded
    assert live.worst.kernel_ratio == recorded.kernel_ratio
    assert (live.worst.cpu, live.worst.comm, live.worst.path) == (recorded.cpu, recorded.comm, recorded.path)


def test_short_ticks_make_up_a_second(tmp_path: Path) -> None:
    written = write_recording(tmp_path, interval_us=SECOND // 5, hz=100)
    live = WorstSecond()
    live.update(_frames(written.segments))
    with open_recording(tmp_path) as recording:
        recorded = worst_second(recording)
    for worst in (live.worst, recorded):
        assert worst
        assert worst.to_us - worst.from_us == SECOND
        assert worst.kernel_ratio == 1.0
        assert worst.comm == "kubelet"


def _cores(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple({"interval_us": SECOND, **row}.get(name) for name in schema.CORES.names) for row in rows]


def test_equal_seconds_are_told_apart_by_samples(tmp_path: Path) -> None:
    at = START_US + SECOND
    rows = [{"time": at, "cpu": cpu, "system_ms": 700, "samples": 50 + cpu % 3} for cpu in range(5)]
    path = write_segment(tmp_path, {"cores": _cores(rows)})
    live = WorstSecond()
    live.update(_frames((path,)))
    with open_recording(tmp_path) as recording:
        assert worst_second(recording) == live.worst == Worst(START_US, at, 2, 0.7, 52)


def test_without_samples_nobody_is_named(tmp_path: Path) -> None:
    path = write_segment(tmp_path, {"cores": _cores([{"time": START_US + SECOND, "cpu": 0, "softirq_ms": 300}])})
    with open_recording(tmp_path) as recording:
        worst = worst_second(recording)
    live = WorstSecond()
    live.update(_frames((path,)))
    assert worst == Worst(START_US, START_US + SECOND, 0, 0.3, None)
    assert live.worst
    assert (live.worst.comm, live.worst.path) == (None, ())


def test_nothing_measured_is_no_worst_second(tmp_path: Path) -> None:
    path = write_segment(tmp_path, {"cores": _cores([{"time": START_US + SECOND, "cpu": 0}])})
    with open_recording(tmp_path) as recording:
        assert worst_second(recording) is None
    live = WorstSecond()
    live.update(_frames((path,)))
    assert live.worst is None


def test_it_works_on_what_a_tail_gives(tmp_path: Path) -> None:
    written = write_recording(tmp_path, segment_s=60)
    live = WorstSecond()
    with Tail(written.node_dir) as tail:
        live.update(tail.poll())
    assert live.worst
    assert live.worst.comm == "kubelet"


# --- stacks -------------------------------------------------------------------------------------------------


def _stack(*names: str) -> list[NamedFrame]:
    return [NamedFrame("main", "user"), *(NamedFrame(name, "kernel") for name in names)]


def test_skid_is_charged_to_the_caller() -> None:
    assert kernel_path(_stack("do_syscall_64", "vfs_read", "_raw_spin_unlock_irqrestore")) == (
        "do_syscall_64",
        "vfs_read",
    )
    assert kernel_path(_stack("asm_exc_page_fault", "exc_page_fault")) == ("asm_exc_page_fault",)
    assert kernel_path(_stack("finish_task_switch")) == ("finish_task_switch",)
    assert kernel_path(_stack()) == ()


def test_the_hottest_path_follows_the_heaviest_callee_and_stops_where_it_spreads() -> None:
    walk = [("read", "show", "iter")] * 60 + [("read", "show", "lock")] * 20 + [("write",)] * 20
    assert hottest_path(walk) == ("read", "show", "iter")
    flat = [("read", "show", f"f{i}") for i in range(10)]
    assert hottest_path(flat) == ("read", "show")
    assert hottest_path([]) == ()
    assert hottest_path([(), ("a",)]) == ("a",)


def test_whoever_ran_in_a_container_is_named_by_it(tmp_path: Path) -> None:
    """Afterwards and live; the scope that systemd made for it has 64 digits for a name."""
    node = box_node()
    trainer = node.task(100, "python3", unit=f"cri-containerd-{TRAINER}.scope", container=TRAINER, pod=TRAINER_UID)
    node.core(START_US + 61 * SECOND, 1, system=1000)
    for tenth in range(10):
        node.sample(START_US + 60 * SECOND + tenth * SECOND // 10, 1, trainer, node.stack([node.frame("vfs_read")]))
    path = write_segment(tmp_path / "boxes", node.tables)
    live = WorstSecond()
    live.update(_frames((path,)))
    with open_recording(tmp_path / "boxes") as recording:
        for worst in (worst_second(recording), live.worst):
            assert worst is not None
            assert (worst.comm, worst.owner) == ("python3", "ml/train-0/main")
