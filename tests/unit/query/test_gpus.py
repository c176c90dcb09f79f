"""GPUs over a window: what was measured, what grew, who was there; and the same as lines and as a lane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US, Node, write_segment

from zombiescope.documents import lanes
from zombiescope.model.answer import document
from zombiescope.query.gpus import Gpu, gpus, series
from zombiescope.query.info import info
from zombiescope.query.recent import Recent
from zombiescope.questions.window import Window, zone_of
from zombiescope.store.log import Block, LogFrame
from zombiescope.store.reader import Recording, open_recording
from zombiescope.store.schema import BY_NAME


def at(second: float) -> int:
    return START_US + round(second * SECOND)


def opened(path: Path, node: Node) -> Recording:
    write_segment(path, node.tables)
    return open_recording(path)


def node() -> Node:
    """Two GPUs for a minute: the first falls from 90 to 10 percent for ten seconds, the second is lost half-way."""
    made = Node()
    for gpu in (0, 1):
        made.gpu(at(1), gpu, ecc_corrected=5)
    for second in range(1, 61):
        used = 10 if 30 < second <= 40 else 90
        asked = {"temperature_c": 60 + second // 10, "reasons": 4, "hw_thermal_ns": 250_000_000, "clock_sm_mhz": 1500}
        made.gpu_second(at(second), 0, used, power_w=600, **(asked if second % 10 == 0 else {}))
        if second <= 30:
            made.gpu_second(at(second), 1, None, power_w=100)
    made.gpu(at(30), 1, state="lost", ecc_corrected=5)
    made.gpu(at(45), 0, ecc_corrected=7, ecc_uncorrected=1)
    made.gpu(at(50), 0, ecc_corrected=1, ecc_uncorrected=1)  # reset
    made.gpu_process(at(1), 0, 31917, "python3", start_ticks=7, memory_bytes=1 << 33, pod="uid-1", container="c" * 64)
    made.container(at(1), "c" * 64, name="trainer", pod="train-0", namespace="ml", pod_uid="uid-1")
    made.gpu_process(at(1), 0, 31918, "python3", start_ticks=8)
    made.gpu_process(at(20), 0, 31918, "python3", start_ticks=8, ended=True)
    return made


def found(recording: Recording, first: float, last: float) -> list[Gpu]:
    return gpus(recording, at(first), at(last))


def test_a_window_of_two_gpus(tmp_path: Path) -> None:
    with opened(tmp_path, node()) as recording:
        first, second = found(recording, 0, 60)
    assert (first.seconds, first.lowest_utilisation) == (60, 10)
    assert first.utilisation == pytest.approx(76.67, 0.01)
    assert (first.power_w, first.temperature_c, first.clock_sm_mhz) == (600, 66, 1500)
    assert first.lost_clocks_s["hw_thermal"] == 1.5
    assert first.lost_clocks_s["power_brake"] is None, "not measured is not zero"
    assert (first.counters["ecc_corrected"], first.added["ecc_corrected"], first.added["ecc_uncorrected"]) == (1, 3, 1)
    assert [one.pid for one in first.processes] == [31917, 31918]
    assert (first.processes[0].pod_name, first.processes[0].container_name) == ("ml/train-0", "trainer")
    assert (second.utilisation, second.state, second.seconds) == (None, "lost", 30)


def test_what_held_before_the_window_is_known_in_it(tmp_path: Path) -> None:
    with opened(tmp_path, node()) as recording:
        first, second = found(recording, 40.5, 60)
    assert (first.utilisation, first.name, second.state) == (90, "NVIDIA H200", "lost")
    assert second.seconds == 0, "a GPU that is lost is not left out"
    assert first.added["ecc_corrected"] == 3
    assert [(one.pid, one.to_us) for one in first.processes] == [(31917, None)]


def test_no_gpu_is_no_gpu(tmp_path: Path) -> None:
    made = Node()
    made.core(at(1), 0, user=5)
    with opened(tmp_path, made) as recording:
        assert found(recording, 0, 60) == []
        assert series(recording, at(0), at(60), 100).count == 0
        assert (info(recording).gpus, info(recording).gpu_driver) == ((), None)


def test_steps_of_an_axis(tmp_path: Path) -> None:
    with opened(tmp_path, node()) as recording:
        line = series(recording, at(0), at(60), 6)
        whole = series(recording, at(0), at(60), 600)
        answer = lanes.document(recording, Window(at(0), at(60), zone_of({})), 6)["gpus"]
        named = info(recording).gpus
    assert line.mean == [90, 90, 90, 10, 90, 90]
    assert line.lowest_gpu == [0] * 6, "one without utilisation is not the idlest"
    assert line.power_w == [700, 700, 700, 600, 600, 600]
    assert len(whole.mean) == 60
    assert whole.mean[30:40] == [10] * 10
    assert (answer["count"], answer["mean"], answer["at"][0]) == (2, line.mean, at(0) / 1e6)
    assert named == ("NVIDIA H200", "NVIDIA H200")


def test_a_hole_is_none(tmp_path: Path) -> None:
    made = Node()
    for second in (1, 2, 5):
        made.gpu_second(at(second), 3, 50)
    with opened(tmp_path, made) as recording:
        line = series(recording, at(0), at(5), 100)
    assert line.mean == [50, 50, None, None, 50]
    assert line.lowest_gpu == [3, 3, None, None, 3]
    assert line.power_w == [None] * 5


def test_a_document_has_words(tmp_path: Path) -> None:
    with opened(tmp_path, node()) as recording:
        answer = document(found(recording, 0, 60)[0])
    assert answer["reasons"] == ["power cap"]
    assert answer["lost_clocks_s"]["hw_thermal"] == 1.5
    assert answer["mig"] is False
    assert answer["processes"][0]["pod"] == "uid-1"


def frame(node: Node, wall_us: int) -> LogFrame:
    def block(name: str, rows: list[tuple[Any, ...]]) -> Block:
        table = BY_NAME[name]
        return Block(table, len(rows), dict(zip(table.names, map(list, zip(*rows, strict=True)), strict=True)))

    return LogFrame(wall_us, 0, tuple(block(name, rows) for name, rows in node.take().items()), False)


def test_the_newest_seconds_are_kept_and_a_hole_is_one() -> None:
    recent, made = Recent(60), Node()
    made.gpu(at(1), 0)
    for second in (1, 2, 4):
        made.gpu_second(at(second), 0, second, power_w=100)
    recent.update(frame(made, at(6)))
    slots = recent.gpu_slots(0, 10)
    assert [slot and slot.utilisation for slot in slots] == [1, 2, None, 4]
    assert [slot and slot.utilisation for slot in recent.gpu_slots(0, 2)] == [None, 4]
    made.gpu(at(70), 0, state="lost")
    recent.update(frame(made, at(100)))
    assert recent.gpu_slots(0, 10) == []
    assert recent.gpus() == [0], "a GPU that is lost is still shown"
