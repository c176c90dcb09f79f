"""GPUs as the recorder sees them: rows and events of what the reader says, a gap while it says nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from zombiescope.base.safe_files import UnsafePlaceError
from zombiescope.kernel import process_vitals
from zombiescope.kernel.process_vitals import Vitals
from zombiescope.recorder.gpu_process import GpuReaderProcess, environment
from zombiescope.recorder.gpus import FAULT_REST_US, GpuTracker
from zombiescope.recorder.sources import Sources
from zombiescope.store import gpu_rules, schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event

NOW_US = 1_760_000_000_000_000
SECOND_US = 1_000_000
MODULE = "zombiescope_gpu_reader_of_a_test"
TALKS = "import json, sys, time\ndef say(**said): print(json.dumps(said), flush=True)\n"
HANGS = TALKS + "say(tables={}, cpu_us=7000, rss_bytes=9)\nsay(asks='figures')\ntime.sleep(600)\n"
HANGS_ITSELF = TALKS + "say(tables={})\ntime.sleep(600)\n"
DEAF = TALKS + "import signal\nsay(tables={})\nwhile True: time.sleep(600)\n"
DIES = "raise SystemExit(3)\n"


class Kept(Batch):
    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, list[dict[str, Any]]] = {}

    def add(self, table: schema.Table, row: tuple[Any, ...]) -> None:
        self.rows.setdefault(table.name, []).append(dict(zip(table.names, row, strict=True)))


class Node:
    """A tracker whose process is a module of the test."""

    def __init__(self) -> None:
        self.batch, self.sources = Kept(), Sources()
        self.tracker = GpuTracker(self.batch, self.sources, library="/stand-in")
        self.now_s = 0.0
        self.use(GpuReaderProcess(module=MODULE))
        self.events: list[Event] = []

    def use(self, process: GpuReaderProcess) -> None:
        """With the test's clock."""
        process.clock = lambda: self.now_s
        self.tracker.process = process

    def second(self, now_us: int) -> None:
        self.now_s = now_us / 1e6
        self.events += self.tracker.second(now_us)
        self.tracker.process.watch()

    def asked(self, now_us: int) -> None:
        """Until it has said what it asks."""
        end = time.monotonic() + 20
        while self.tracker.process._asks is None:
            assert time.monotonic() < end
            self.second(now_us)
            time.sleep(0.01)

    def hear(self, now_us: int) -> None:
        """Seconds, all of them the same one, until it has said something."""
        end = time.monotonic() + 20
        before = self.tracker.process.messages
        while self.tracker.process.messages == before:
            assert time.monotonic() < end
            self.second(now_us)
            time.sleep(0.01)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def take(self, now_us: int, **said: Any) -> None:
        self.events += list(self.tracker._take(said, now_us))


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / f"{MODULE}.py"


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    made.tracker.process.stop()


def gpu(at_us: int, number: int, state: str = "ok", uuid: str | None = None) -> list[Any]:
    values = {"time": at_us, "gpu": number, "state": state, "uuid": uuid or f"GPU-{number}", "name": "NVIDIA H200"}
    return [values.get(name) for name in schema.GPUS.names]


def second(at_us: int, **values: Any) -> list[Any]:
    return [{"time": at_us, "gpu": 0, **values}.get(name) for name in schema.GPU_SECONDS.names]


def tenant(at_us: int, pid: int, ended: int = 0) -> list[Any]:
    values = {"time": at_us, "gpu": 0, "pid": pid, "start_ticks": 5, "ended": ended}
    return [values.get(name) for name in schema.GPU_PROCESSES.names]


def test_a_node_without_a_driver_starts_nothing_and_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    monkeypatch.setattr("zombiescope.kernel.gpu_driver.read", lambda *_: looks.append("look"))
    tracker, sources = GpuTracker(Kept(), sources := Sources()), sources
    for number in range(120):
        assert tracker.second(NOW_US + number * SECOND_US) == []
    assert (tracker.process.runs, sources.missing, tracker.driver) == (0, [], None)
    assert len(looks) == 3, "at the start, and once a minute"


def test_a_replay_asks_nobody() -> None:
    tracker = GpuTracker(Kept(), Sources(), root="/elsewhere", library="/stand-in")
    tracker.second(NOW_US)
    assert tracker.process.runs == 0


def test_a_driver_that_hangs_is_a_gap_and_an_event_and_never_a_second_process(program: Path, node: Node) -> None:
    program.write_text(HANGS)
    node.second(NOW_US)
    node.asked(NOW_US)
    pid = node.tracker.process.pid
    for number in range(1, 15):
        node.second(NOW_US + number * SECOND_US)
    assert (node.kinds(), node.sources.missing) == ([], [])
    assert "in a call of the GPU driver (figures) for" in node.tracker.process.pulse.why
    for number in range(15, 50):
        node.second(NOW_US + number * SECOND_US)
    assert node.kinds() == ["gpu_driver_unresponsive"]
    assert node.events[0].fields["since_us"] == NOW_US
    assert node.events[0].text.startswith("the GPU driver has not answered")
    ((from_us, _, source, why),) = node.sources.open_gaps(0, NOW_US + 50 * SECOND_US)
    assert (from_us, source) == (NOW_US, "gpu")
    assert "08:53:20 UTC" in why
    assert (node.tracker.process.runs, node.tracker.process.pid) == (1, pid)
    assert node.tracker.process.cpu_us == 7000


def test_one_that_hangs_where_it_can_be_ended_is_ended_and_only_then_replaced(program: Path, node: Node) -> None:
    program.write_text(HANGS)
    node.second(NOW_US)
    node.asked(NOW_US)
    node.second(NOW_US + 16 * SECOND_US)
    first = node.tracker.process.pid
    program.write_text(TALKS + "say(tables={})\nsys.stdin.read()\n")
    later_us = NOW_US + 61 * SECOND_US
    end = time.monotonic() + 20
    while node.tracker.process.runs < 2:
        assert time.monotonic() < end
        node.second(later_us)
        time.sleep(0.01)
    assert node.tracker.process.pid != first
    node.hear(later_us + SECOND_US)
    assert node.kinds() == ["gpu_driver_unresponsive", "gpu_driver_answers"]
    assert node.sources.missing == []
    assert [gap[:3] for gap in node.sources.take_ended()] == [(NOW_US, later_us + SECOND_US, "gpu")]


def test_one_in_the_kernel_is_left_alone(program: Path, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task in D cannot be made by an ordinary user: its state is said to be that."""
    program.write_text(HANGS)
    node.second(NOW_US)
    node.asked(NOW_US)
    real = process_vitals.read
    monkeypatch.setattr(process_vitals, "read", lambda pid: Vitals("D", 0.0, 0) if real(pid) else None)
    for number in range(15, 120):
        node.second(NOW_US + number * SECOND_US)
    assert node.tracker.process.runs == 1
    assert node.tracker.process.ended() is None, "alive"
    assert node.kinds() == ["gpu_driver_unresponsive"]


def test_one_that_got_no_cpu_blames_nobody(program: Path, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    program.write_text(HANGS)
    node.second(NOW_US)
    node.asked(NOW_US)
    monkeypatch.setattr(process_vitals, "read", lambda _: Vitals("R", 0.0, 0))
    node.second(NOW_US + SECOND_US)
    node.second(NOW_US + 20 * SECOND_US)
    assert node.tracker.process.part().state == "ok"
    node.second(NOW_US + 90 * SECOND_US)
    assert (node.kinds(), node.sources.missing) == ([], [])
    starved = node.tracker.process.part()
    assert starved.state == "hung"
    assert "it got no CPU" in starved.why


def test_a_reader_that_hangs_between_two_calls_does_not_blame_the_driver(program: Path, node: Node) -> None:
    program.write_text(HANGS_ITSELF)
    node.second(NOW_US)
    node.hear(NOW_US)
    node.second(NOW_US + 30 * SECOND_US)
    assert (node.kinds(), node.sources.missing) == ([], [])
    assert node.tracker.process.pulse.why.startswith("does not answer for 30 s: it waits")


def test_one_that_dies_is_said_once_and_started_ever_more_rarely(program: Path, node: Node) -> None:
    program.write_text(DIES)
    starts = []
    for number in range(400):
        before = node.tracker.process.runs
        node.second(NOW_US + number * SECOND_US)
        if node.tracker.process.runs > before:
            starts.append(number)
            pid = node.tracker.process.pid
            assert pid is not None
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it has ended by the next second
    assert node.tracker.process.pulse.failures == len(starts)
    assert node.tracker.process.pulse.why == "ended by itself with exit code 3"
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert gaps == sorted(gaps)
    assert len(starts) <= 8


def test_a_driver_that_cannot_be_asked_is_missing_with_what_mends_it(node: Node) -> None:
    node.take(NOW_US, fault=18, why="nvmlInitWithFlags: different versions")
    (missing,) = node.sources.missing
    assert (missing.source, missing.grant.startswith("reboot")) == ("gpu", True)
    assert not node.tracker.process.due(NOW_US + FAULT_REST_US - 1)
    node.take(NOW_US, fault=9, why="no driver")
    assert node.sources.missing == [], "no driver is no fault"


def test_what_it_says_is_written_and_said_again_in_a_new_segment(node: Node) -> None:
    tables = {"gpus": [gpu(NOW_US, 0)], "gpu_processes": [tenant(NOW_US, 7), tenant(NOW_US, 8)],
              "gpu_seconds": [second(NOW_US, utilisation=9, utilisation_samples=[8, 10])]}  # fmt: skip
    node.take(NOW_US, tables=tables, first=True)
    node.take(NOW_US, tables={"gpu_processes": [tenant(NOW_US + 1, 8, ended=1)]})
    assert node.batch.rows["gpu_seconds"][0]["utilisation_samples"] == [8, 10]
    node.batch.rows.clear()
    node.tracker.restart(NOW_US + 5)
    assert [(row["time"], row["state"]) for row in node.batch.rows["gpus"]] == [(NOW_US + 5, "ok")]
    assert [(row["time"], row["pid"]) for row in node.batch.rows["gpu_processes"]] == [(NOW_US + 5, 7)]


def test_a_lost_gpu_is_an_event(node: Node) -> None:
    node.take(NOW_US, tables={"gpus": [gpu(NOW_US, 0), gpu(NOW_US, 1)]}, first=True)
    node.take(NOW_US, tables={"gpus": [gpu(NOW_US + 1, 1, "lost")]})
    node.take(NOW_US, tables={"gpus": [gpu(NOW_US + 2, 1, "ok")]})
    assert node.kinds() == ["gpu_lost", "gpu_back"]
    lost = node.events[0]
    assert (lost.severity, lost.fields["gpu"], lost.text[:19]) == ("critical", 1, "GPU 1 (NVIDIA H200)")


def test_a_gpu_that_a_new_reader_does_not_find_is_lost_not_gone(node: Node) -> None:
    node.take(
        NOW_US, tables={"gpus": [gpu(NOW_US, 0), gpu(NOW_US, 1)], "gpu_processes": [tenant(NOW_US, 7)]}, first=True
    )
    node.batch.rows.clear()
    node.take(NOW_US, tables={"gpus": [gpu(NOW_US, 0, uuid="GPU-1")]}, first=True)
    states = {(row["uuid"], row["gpu"]): row["state"] for row in node.batch.rows["gpus"]}
    assert states == {("GPU-1", 0): "ok", ("GPU-0", 1): "lost"}
    assert node.kinds() == ["gpu_lost"]
    assert [(row["pid"], row["ended"]) for row in node.batch.rows["gpu_processes"]] == [(7, 1)]


def test_heat_and_power_brake_are_events_a_power_cap_at_full_load_is_none(node: Node) -> None:
    def later(number: int, **values: Any) -> None:
        at_us = NOW_US + number * 10 * SECOND_US
        row = second(at_us, temperature_c=91, hw_thermal_ns=0, power_cap_ns=9_900_000_000, **values)
        node.take(at_us, tables={"gpu_seconds": [row]})

    later(0)
    later(1)
    assert node.kinds() == []
    row = second(NOW_US + 20 * SECOND_US, temperature_c=91, hw_thermal_ns=4_000_000_000)
    node.take(NOW_US + 20 * SECOND_US, tables={"gpu_seconds": [row]})
    row = second(NOW_US + 30 * SECOND_US, temperature_c=91, hw_thermal_ns=9_000_000_000)
    node.take(NOW_US + 30 * SECOND_US, tables={"gpu_seconds": [row]})
    assert node.kinds() == ["gpu_throttled"], "once while it lasts"
    assert (
        node.events[0].text == "GPU 0 ran with lowered clocks for 4.0 of 10 s: it is too hot (hardware slowdown), 91 °C"
    )
    assert node.events[0].fields == {"gpu": 0, "reason": "hw_thermal", "held_ms": 4000}


def throttled(node: Node, slowdown_c: int | None = 87, **values: Any) -> list[Event]:
    """A GPU of 1,980 MHz at most, which the driver counts as held down by heat."""
    said = {} if slowdown_c is None else {"slowdown_c": {"0": slowdown_c}}
    row = gpu(NOW_US, 0)
    row[schema.GPUS.names.index("clock_sm_max_mhz")] = 1980
    node.take(NOW_US, tables={"gpus": [row], "gpu_seconds": [second(NOW_US, sw_thermal_ns=0)]}, **said)
    at_us = NOW_US + 10 * SECOND_US
    node.take(at_us, tables={"gpu_seconds": [second(at_us, sw_thermal_ns=9_900_000_000, **values)]})
    return [event for event in node.events if event.kind == "gpu_throttled"]


def test_locked_clocks_are_not_called_heat(node: Node) -> None:
    (event,) = throttled(node, temperature_c=37, clock_sm_mhz=345)
    assert (event.severity, event.fields["locked"]) == ("info", 1)
    assert event.text == (
        "GPU 0 (NVIDIA H200) ran with lowered clocks for 9.9 of 10 s: the driver counts it as heat, but it is at 37 °C "
        "(limit 87 °C) and at 345 of 1,980 MHz: its clocks are locked, as it seems; nvidia-smi -i 0 -rgc resets that"
    )


@pytest.mark.parametrize(
    ("slowdown_c", "figures", "severity"),
    [
        (87, {"temperature_c": 86}, "warning"),
        (87, {"temperature_c": 77}, "warning"),  # a driver begins before the hardware does
        (87, {"temperature_c": 60, "memory_temperature_c": 95}, "warning"),  # heat of its memory
        (87, {"temperature_c": 76, "memory_temperature_c": 70}, "info"),
        (None, {"temperature_c": 75}, "warning"),  # who knows
        (None, {"temperature_c": 59}, "info"),
        (87, {}, "warning"),
    ],
)
def test_heat_is_checked_against_the_temperature_and_its_limit(
    slowdown_c: int | None, figures: dict[str, int], severity: str, node: Node
) -> None:
    (event,) = throttled(node, slowdown_c, clock_sm_mhz=1500, **figures)
    assert event.severity == severity
    assert ("it is too hot" in event.text) == (severity == "warning")
    assert "locked" not in event.text


def test_the_limit_is_recorded_when_it_is_known_and_in_each_segment() -> None:
    kept: list[tuple[Any, ...]] = []
    tracker = GpuTracker(Kept(), Sources(), library="/stand-in", gauge=lambda *row: kept.append(row))
    for _ in range(2):
        list(tracker._take({"slowdown_c": {"0": 87, "x": 3, "1": "hot"}}, NOW_US))
    tracker.restart(NOW_US + SECOND_US)
    assert kept == [(NOW_US, "gpu", "slowdown_c", "0", 87), (NOW_US + SECOND_US, "gpu", "slowdown_c", "0", 87)]


def test_rows_of_another_time_are_not_written(node: Node) -> None:
    rows = [second(NOW_US - 3600 * SECOND_US), second(NOW_US), second(NOW_US + 3600 * SECOND_US)]
    node.take(NOW_US, tables={"gpu_seconds": rows})
    assert [row["time"] for row in node.batch.rows["gpu_seconds"]] == [NOW_US]


@pytest.mark.parametrize("line", [b"nonsense\n", b"[1,2]\n", b"[" * 100_000 + b"\n", b'{"tables": {"gpus": [[1]]}}\n'])
def test_a_line_that_is_none_costs_nothing(node: Node, line: bytes, program: Path) -> None:
    program.write_text(f"import sys\nsys.stdout.buffer.write({line!r})\nsys.stdout.flush()\nsys.stdin.read()\n")
    node.second(NOW_US)
    time.sleep(0.3)
    for number in range(5):
        node.second(NOW_US + number)
    assert node.batch.rows == {}


def test_never_a_second_one_while_that_of_an_earlier_recorder_hangs(program: Path, node: Node, tmp_path: Path) -> None:
    program.write_text(HANGS)
    held = tmp_path / "gpu.lock"
    earlier = GpuReaderProcess(module=MODULE, lock_file=held)
    assert earlier.start(NOW_US)
    node.use(GpuReaderProcess(module=MODULE, lock_file=held))
    for number in range(30):
        node.second(NOW_US + number * SECOND_US)
    assert node.tracker.process.runs == 0
    assert "before this one" in node.sources.missing[0].why
    earlier.stop()
    node.second(NOW_US + 120 * SECOND_US)
    assert node.tracker.process.runs == 1


@pytest.mark.parametrize("kind", ["link", "second name", "pipe"])
def test_a_lock_that_is_another_file_is_not_taken(kind: str, tmp_path: Path) -> None:
    """In a directory that a user owned once, a second name of a file of root's would be locked, and kept open."""
    other, held = tmp_path / "other", tmp_path / "gpu.lock"
    other.write_text("precious")
    if kind == "link":
        held.symlink_to(other)
    elif kind == "second name":
        held.hardlink_to(other)
    else:
        os.mkfifo(held)
    reader = GpuReaderProcess(module=MODULE, lock_file=held)
    with pytest.raises(UnsafePlaceError):
        reader.start(NOW_US)
    assert (reader.runs, reader.pid) == (0, None)


def test_places_of_libraries_are_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", ":/usr/local/nvidia/lib64:relative::.")
    assert environment()["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64"
    monkeypatch.setenv("LD_LIBRARY_PATH", ".")
    assert "LD_LIBRARY_PATH" not in environment()


# --- letting go of the driver ----------------------------------------------------------------------------------------

WAITS = TALKS + "say(tables={})\nsys.stdin.read()\n"


def running(node: Node, at_us: int, *, wanted: bool) -> None:
    """Seconds from then on until its process runs, or does not."""
    end = time.monotonic() + 20
    while node.tracker.process.running is not wanted:
        assert time.monotonic() < end
        node.second(at_us)
        time.sleep(0.01)


def test_on_request_the_reader_ends_and_comes_back_when_the_time_is_over(
    node: Node, program: Path, tmp_path: Path
) -> None:
    # GIVEN a reader that has the driver open
    program.write_text(WAITS)
    node.tracker.runtime = tmp_path
    node.hear(NOW_US)
    # WHEN ten minutes are asked for
    gpu_rules.request(tmp_path, NOW_US / 1e6 + 600)
    running(node, NOW_US + SECOND_US, wanted=False)
    # THEN nobody has it open, it is said, and the end is no failure
    assert "released on request" in (node.sources.why("gpu") or "")
    node.second(NOW_US + 599 * SECOND_US)
    assert not node.tracker.process.running
    assert node.tracker.process.part().failures == 0
    running(node, NOW_US + 601 * SECOND_US, wanted=True)
    node.hear(NOW_US + 601 * SECOND_US)
    assert node.sources.missing == []


@pytest.mark.parametrize("text", ["", "soon", "-1", str(NOW_US // 1_000_000 - 1)])
def test_a_request_that_means_nothing_or_is_over_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / gpu_rules.NAME).write_text(text)
    assert gpu_rules.until_s(tmp_path, NOW_US / 1e6) is None


def test_nobody_closes_it_for_longer_than_an_hour_and_a_strangers_word_does_not_count(tmp_path: Path) -> None:
    gpu_rules.request(tmp_path, NOW_US / 1e6 + 10**7)
    assert gpu_rules.until_s(tmp_path, NOW_US / 1e6) == NOW_US / 1e6 + gpu_rules.MOST_S
    if os.geteuid() == 0:
        os.chown(tmp_path / gpu_rules.NAME, 65534, -1)
        assert gpu_rules.until_s(tmp_path, NOW_US / 1e6) is None


def test_a_gpu_that_waits_for_its_reset_is_let_go_of_for_a_minute(node: Node, program: Path) -> None:
    program.write_text(TALKS + "say(tables={})\nsay(released=[3])\n")
    node.hear(NOW_US)
    running(node, NOW_US, wanted=False)
    (missing,) = node.sources.missing
    assert missing.grant == "nvidia-smi --gpu-reset -i 3"
    node.second(NOW_US + 59 * SECOND_US)
    assert not node.tracker.process.running
    running(node, NOW_US + 61 * SECOND_US, wanted=True)
    assert node.tracker.process.part().failures == 0
