"""The reader of hardware counters: a driver that hangs, one that refuses, counters that wrap, fill up or are reset."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers import rdma_tree

from zombiescope.kernel.infiniband_counters import FULL
from zombiescope.recorder.hardware import READER, REFUSAL, REFUSED, STUCK_S, Hardware, HardwareProcess, has_hardware
from zombiescope.recorder.hardware_reader import HardwareReader, PortCounters
from zombiescope.recorder.heartbeats import Heartbeats
from zombiescope.recorder.sources import Sources
from zombiescope.store.event import Event

DEADLINE_S = 20.0


class Bench:
    """Hardware over a tree, with a reader of its own that asks ten times a second; the clock is the test's."""

    def __init__(self, root: Path) -> None:
        self.sources, self.events, self.figures = Sources(), list[Event](), dict[tuple[str, str, str | None], int]()
        self.hardware = Hardware(self.sources, self._put, str(root))
        self.hardware.process = HardwareProcess(str(root), 0.1)
        self.hardware.tell = self.events.append
        self.now_s = 100.0

    def _put(self, source: str, figures: Any) -> None:
        for name, key, value, _ in figures:
            self.figures[source, name, key] = value

    def until(self, so: Callable[[], bool]) -> None:
        end = time.monotonic() + DEADLINE_S
        while not so():
            assert time.monotonic() < end, "it never came"
            self.hardware.tick(0, self.now_s)
            time.sleep(0.01)

    def why(self, source: str) -> str:
        return next((one.why for one in self.sources.missing if one.source == source), "")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.hardware.close()


def test_figures_of_sixteen_ports_and_of_the_machine_arrive(bench: Bench, tmp_path: Path) -> None:
    for number in range(16):
        rdma_tree.mlx5_roce(tmp_path, f"mlx5_{number}", symbol_error=number)
    rdma_tree.throttling(tmp_path, 8, core_throttle_count=2)
    bench.until(lambda: ("thermal", "core_throttle_count", "package 1") in bench.figures)
    assert [bench.figures["infiniband", "symbol_error", f"mlx5_{n}/1"] for n in range(16)] == list(range(16))
    assert bench.figures["infiniband_link", "rate_mbps", "mlx5_3/1"] == 400_000
    assert bench.sources.missing == []


def test_without_hardware_no_process_is_started(bench: Bench, tmp_path: Path) -> None:
    bench.hardware.tick(0, bench.now_s)
    assert not bench.hardware.process.running
    assert not has_hardware(str(tmp_path))


def test_a_driver_that_hangs_costs_its_port_alone_and_is_told_once(bench: Bench, tmp_path: Path) -> None:
    rdma_tree.mlx5_ib(tmp_path, "mlx5_0", symbol_error=1)
    hangs = rdma_tree.mlx5_ib(tmp_path, "mlx5_1") / "counters" / "symbol_error"
    rdma_tree.mlx5_ib(tmp_path, "mlx5_2", symbol_error=3)
    hangs.unlink()
    os.mkfifo(hangs)  # opened for reading it waits for a writer, for ever
    bench.until(lambda: ("infiniband", "symbol_error", "mlx5_0/1") in bench.figures)
    bench.until(lambda: bench.hardware.process._asks == "mlx5_1/1")
    bench.now_s += STUCK_S + 1
    bench.until(lambda: not bench.hardware.process.running)
    assert [event.kind for event in bench.events] == ["driver_unresponsive"]
    assert bench.events[0].fields["interface"] == "mlx5_1/1"
    assert "mlx5_1/1 is not read any more" in bench.why(REFUSED)
    bench.now_s += 3600
    bench.until(lambda: ("infiniband", "symbol_error", "mlx5_2/1") in bench.figures)
    assert len(bench.events) == 1


def test_a_port_that_refuses_is_asked_once_and_the_others_go_on(bench: Bench, tmp_path: Path) -> None:
    refuses = rdma_tree.mlx5_ib(tmp_path, "mlx5_0") / "counters" / "VL15_dropped"
    refuses.unlink()
    refuses.mkdir()  # read() answers with an error
    rdma_tree.mlx5_ib(tmp_path, "mlx5_1", symbol_error=5)
    bench.until(lambda: ("infiniband", "symbol_error", "mlx5_1/1") in bench.figures)
    assert "mlx5_0/1 is not read any more (VL15_dropped: Is a directory)" in bench.why(REFUSED)
    refuses.rmdir()
    rdma_tree.mlx5_ib(tmp_path, "mlx5_0", symbol_error=9)
    rdma_tree.mlx5_ib(tmp_path, "mlx5_1", symbol_error=6)
    bench.until(lambda: bench.figures["infiniband", "symbol_error", "mlx5_1/1"] == 6)
    assert ("infiniband", "symbol_error", "mlx5_0/1") not in bench.figures


def test_a_driver_that_logs_an_error_at_each_reading_is_switched_off_at_the_first(bench: Bench, tmp_path: Path) -> None:
    rdma_tree.mlx5_ib(tmp_path, "mlx5_0", symbol_error=1, bus="0000:18:00.0")
    rdma_tree.mlx5_ib(tmp_path, "mlx5_1", symbol_error=1, bus="0000:2a:00.0")
    bench.until(lambda: ("infiniband", "symbol_error", "mlx5_1/1") in bench.figures)
    for command in ("CREATE_QP", "ACCESS_REG", "ACCESS_REG"):
        fields = {"bus": "0000:18:00.0", "command": command}
        bench.hardware.refused(Event(7, REFUSAL, "kmsg", "info", "failed", fields))
    assert bench.hardware.process.off == {"0000:18:00.0"}
    assert "logs an error at each reading" in bench.why(REFUSED)
    time.sleep(0.3)
    rdma_tree.mlx5_ib(tmp_path, "mlx5_0", symbol_error=9, bus="0000:18:00.0")
    rdma_tree.mlx5_ib(tmp_path, "mlx5_1", symbol_error=9, bus="0000:2a:00.0")
    bench.until(lambda: bench.figures["infiniband", "symbol_error", "mlx5_1/1"] == 9)
    assert bench.figures["infiniband", "symbol_error", "mlx5_0/1"] == 1


def test_a_full_counter_is_a_gap_until_it_is_reset(bench: Bench, tmp_path: Path) -> None:
    rdma_tree.mlx5_ib(tmp_path, symbol_error=65535)
    bench.until(lambda: bool(bench.sources.missing))
    assert bench.why(FULL) == "mlx5_0/1 symbol_error: full, they count no more"
    rdma_tree.mlx5_ib(tmp_path, symbol_error=0)
    bench.until(lambda: not bench.sources.missing)
    assert [gap[2] for gap in bench.sources.take_ended()] == [FULL]


def test_a_link_that_goes_down_and_comes_back_are_two_events(bench: Bench, tmp_path: Path) -> None:
    rdma_tree.mlx5_ib(tmp_path)
    bench.until(lambda: ("infiniband_link", "state", "mlx5_0/1") in bench.figures)
    rdma_tree.mlx5_ib(tmp_path, state="1: DOWN")
    bench.until(lambda: bool(bench.events))
    rdma_tree.mlx5_ib(tmp_path)
    bench.until(lambda: len(bench.events) == 2)
    assert [(one.kind, one.severity, one.fields["interface"]) for one in bench.events] == [
        ("link_down", "info", "mlx5_0/1"),
        ("link_up", "info", "mlx5_0/1"),
    ]


def test_one_counter_of_32_bits_that_falls_goes_on_and_several_were_reset() -> None:
    last = (1 << 32) - 1
    one = PortCounters()
    assert one.follow({"out_of_buffer": last - 1, "packet_seq_err": 7})["out_of_buffer"] == last - 1
    assert one.follow({"out_of_buffer": 3, "packet_seq_err": 7})["out_of_buffer"] == last + 4
    assert one.follow({"out_of_buffer": 9, "packet_seq_err": 7})["out_of_buffer"] == last + 10
    assert one.follow({"out_of_buffer": 1, "packet_seq_err": 0}) == {"out_of_buffer": 1, "packet_seq_err": 0}


def test_only_what_changed_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rdma_tree.mlx5_roce(tmp_path, symbol_error=1)
    reader = HardwareReader(str(tmp_path), set())
    reader.round()
    first = capfd.readouterr().out
    reader.round()
    assert len(capfd.readouterr().out) < len(first) / 4


def test_what_the_reader_says_may_be_anything(bench: Bench) -> None:
    for line in (b"", b"nonsense", b"[]", b'{"of":1}', b'{"figures":null,"full":null}', b"\xff\xfe"):
        said = bench.hardware.process._understood(line)
        if said is not None:
            bench.hardware._take(said, 0)
    assert bench.figures == {}


def test_the_end_does_not_wait_for_a_driver(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rdma_tree.mlx5_ib(tmp_path)
    bench.until(lambda: bool(bench.figures))
    process = bench.hardware.process
    waited: list[float] = []
    monkeypatch.setattr(HardwareProcess, "_reaped", lambda _: False)
    monkeypatch.setattr(time, "sleep", waited.append)
    clock = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    process.stop()
    assert len(waited) <= 1
    monkeypatch.undo()
    process.stop()
    assert not process.running


def test_an_error_counter_that_stood_still_and_rises_is_worth_a_look(bench: Bench) -> None:
    hardware, minute_us = bench.hardware, 60_000_000

    def reads(minute: float, **values: int) -> list[str]:
        figures = [["infiniband", name, "mlx5_0/1", value, False] for name, value in values.items()]
        hardware._take({"of": "mlx5_0/1", "figures": figures}, int(minute * minute_us))
        return hardware.take_suspects()

    assert reads(1, symbol_error=5, np_cnp_sent=5) == []
    assert reads(3, symbol_error=9, np_cnp_sent=900) == ["infiniband mlx5_0/1"]
    assert reads(3.2, symbol_error=19) == []  # it goes on
    assert reads(9, symbol_error=20) == ["infiniband mlx5_0/1"]
    assert reads(15, symbol_error=3) == []  # somebody reset it


def test_a_reader_that_ends_by_itself_is_a_gap_until_it_reads_again(bench: Bench, tmp_path: Path) -> None:
    rdma_tree.mlx5_ib(tmp_path, symbol_error=1)
    beats = Heartbeats(bench.sources, bench.events.append)
    beats.add_process(bench.hardware.process, "figures are missing", source=READER)
    bench.until(lambda: bool(bench.figures))
    pid = bench.hardware.process._pid
    assert pid is not None
    os.kill(pid, 9)
    bench.until(lambda: not bench.hardware.process.running)
    beats.judge(1)
    assert "was killed (SIGKILL)" in bench.why(READER)
    bench.now_s += 5
    bench.until(lambda: bench.hardware.process.pulse.state == "ok")
    beats.judge(2)
    assert [gap[2] for gap in bench.sources.take_ended()] == [READER]
    assert [event.kind for event in bench.events] == ["helper_failed"]
