"""Every helper process, ended or stopped in every way: it is reported, with the reason, and nobody else is blamed.

The helpers are the real ones. A `sitecustomize` on their PYTHONPATH breaks them when they are sent SIGUSR1; nothing of
it is in the product. All are broken at the same time, once for each way.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.helpers import rdma_tree
from tests.helpers.nvml_stand_in import StandIn

from zombiescope.recorder.compactor import ChildProcess
from zombiescope.recorder.doctor_process import DoctorProcess
from zombiescope.recorder.gpu_process import GpuReaderProcess
from zombiescope.recorder.hardware import HardwareProcess
from zombiescope.recorder.heartbeats import KIND, Heartbeats
from zombiescope.recorder.page import PageProcess, PageSettings
from zombiescope.recorder.piped_process import PipedProcess
from zombiescope.recorder.python_process import PythonProcess
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.wait_process import WaitProcess
from zombiescope.recorder.whole_stacks import MODULE as STACK_READER
from zombiescope.store.event import Event
from zombiescope.store.health import LIVE_DIAGNOSIS, Part

FAULTS = """
import os, signal, sys

def fault(*_):
    way = open({way!r}).read()
    if way == "exception":
        raise ValueError("made by a test")
    if way == "exit":
        sys.exit(7)
    if way == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does it for lack of memory
    if way == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    while way == "loop":
        pass
    if way == "memory":
        bytearray(16 << 30)  # refused before a page of it is touched

signal.signal(signal.SIGUSR1, fault)
"""
ENDLESS_PASS = """
import sys, time
from zombiescope.base import helper as _helper
_helper.begin()
from zombiescope.diagnosis import live, standby
from zombiescope.store import steps
def look(node_dir, from_us):
    while True:
        steps.step("in a test")
        time.sleep(0.1)
live.look = look
sys.exit(standby.main(sys.argv[1:]))
"""
ENDLESS_COMPACTION = """
import time
from zombiescope.base import helper as _helper
from zombiescope.store import compact
_helper.begin()
while True:
    compact._beat("in a test")
    time.sleep(0.1)
"""
REPORTED = {
    "exception": (
        "failed",
        r"(crashed: |failed in a diagnosis pass: )ValueError: made by a test \(sitecustomize.py:\d+\)",
    ),
    "exit": ("failed", r"ended by itself with exit code 7|failed in a diagnosis pass: exit code 7"),
    "crash": ("failed", r"crashed: SIGSEGV .*Segmentation fault \(sitecustomize.py:\d+ in fault\)\)+"),
    "kill": (
        "failed",
        r"was killed \(SIGKILL\), by a user or for lack of memory"
        r"|failed: a diagnosis pass was killed: .* or memory ran out",
    ),
    "memory": ("failed", r"exceeded its memory limit (of [\d,]+ MB|\([\d,]+ MB\) in a diagnosis pass)"),
    "stop": ("hung", r"is stopped \(SIGSTOP\)"),
    "loop": ("hung", r"(does not answer|has not got on in a diagnosis pass) for \d+ s( \(in a test\))?: it is busy"),
}
PASS = "a diagnosis pass"
START_S, REPORT_S = 90.0, 60.0
SILENT_S = 4.0


@dataclass(frozen=True)
class Running:
    process: PipedProcess
    turn: Callable[[], object]
    """Listens, and never starts another one."""
    is_at_work: Callable[[], bool]

    @property
    def victim(self) -> int:
        """Who is broken: the process, or the one that works for it."""
        assert self.process.pid is not None
        return self.process._subject()


def worked(process: PipedProcess) -> Callable[[], bool]:
    return lambda: process.pulse.work > 0


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    made = StandIn(tmp_path_factory.mktemp("driver"))
    made.script("gpus 1")
    return made


@pytest.fixture
def breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Says in which way."""
    modules, way = tmp_path / "modules", tmp_path / "way"
    modules.mkdir()
    (modules / "sitecustomize.py").write_text(FAULTS.format(way=str(way)))
    (modules / "zombiescope_endless_pass.py").write_text(ENDLESS_PASS)
    (modules / "zombiescope_endless_compaction.py").write_text(ENDLESS_COMPACTION)
    monkeypatch.setenv("PYTHONPATH", str(modules))
    return lambda text: void(way.write_text(text))


def void(_: object) -> None:
    return None


@pytest.fixture
def parts(breaks: Callable[[str], None], tmp_path: Path, driver: StandIn) -> Iterator[dict[str, Running]]:
    """Each part of a recorder that is a process, at work."""
    del breaks
    with ExitStack() as stack:
        made = dict(each(tmp_path, driver, stack))
        for running in made.values():
            running.process.STARVED_RATIO = 0.0  # type: ignore[misc]  # all of them loop at once
            stack.callback(ended, running.process)
        yield made


def each(place: Path, driver: StandIn, stack: ExitStack) -> Iterator[tuple[str, Running]]:
    me = os.getpid()
    python, stacks = PythonProcess(), PythonProcess(STACK_READER, "whole stack reader")
    for reader, whom in ((python, {"pids": [me], "fast": []}), (stacks, {"threads": [[me, me]]})):
        reader.tell(1, whom)
        yield reader.pulse.name, Running(reader, reader.listen, worked(reader))
    waits = WaitProcess()
    waits.ask(1, {"tasks": True})
    yield waits.pulse.name, Running(waits, lambda: waits.listen(1), worked(waits))
    gpus = GpuReaderProcess(str(driver.place))
    assert gpus.start(1)
    yield gpus.pulse.name, Running(gpus, lambda: (gpus.listen(1), gpus.ended()), worked(gpus))
    rdma_tree.mlx5_ib(place / "tree")
    hardware = HardwareProcess(str(place / "tree"), 1.0)
    hardware.turn(0.0)
    yield hardware.pulse.name, Running(hardware, lambda: hardware.turn(0.0), worked(hardware))
    compaction = ChildProcess("zombiescope_endless_compaction", 10**9)
    compaction.start(0)
    yield compaction.pulse.name, Running(compaction, lambda: compaction.reap(0), lambda: compaction._heard_s > 0)
    page = PageProcess(PageSettings(listening(stack), ("127.0.0.1", 0), None, None, ()), place, "n")
    page.second(1)
    yield page.pulse.name, Running(page, lambda: page.second(1), worked(page))
    doctor = DoctorProcess(place)
    doctor.start(1)
    yield doctor.pulse.name, Running(doctor, doctor.listen, worked(doctor))
    in_pass = DoctorProcess(place, "zombiescope_endless_pass")
    in_pass.pulse.name = PASS
    in_pass.start(1)
    yield PASS, Running(in_pass, lambda: with_pass(in_pass), lambda: in_pass._pass_pid is not None)


def listening(stack: ExitStack) -> int:
    made = socket.create_server(("127.0.0.1", 0))
    stack.callback(made.close)
    return os.dup(made.fileno())


def with_pass(process: DoctorProcess) -> None:
    process.listen()
    if process.free and process.looks == 0:
        process.ask(1, 1)


def ended(process: PipedProcess) -> None:
    if process.pid is not None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        assert process._gone_within(20)


class Node:
    """What a recorder makes of its parts."""

    def __init__(self, parts: dict[str, Running]) -> None:
        self.parts = parts
        self.sources, self.events, self.lines = Sources(), list[Event](), list[str]()
        self._beats = Heartbeats(self.sources, self.events.append)
        self._beats.say = self.lines.append
        for name, running in parts.items():
            self._beats.add_process(running.process, "something is missing", source=f"source of {name}")
        self.told: dict[str, Part] = {}

    def until(self, done: Callable[[], bool], limit_s: float) -> None:
        end_s = time.monotonic() + limit_s
        while not done():
            assert time.monotonic() < end_s, self.told
            for running in self.parts.values():
                running.turn()
            self.told = {part.name: part for part in self._beats.judge(1)}
            time.sleep(0.1)


@pytest.mark.parametrize("way", REPORTED)
def test_each_part_that_dies_or_hangs_is_reported(
    way: str, parts: dict[str, Running], breaks: Callable[[str], None]
) -> None:
    # GIVEN every part at work, one of them in a pass that takes longer than a part may be silent
    node = Node(parts)
    node.until(lambda: all(running.is_at_work() for running in parts.values()), START_S)
    for running in parts.values():
        running.process.silent_s = SILENT_S
    at_work_s = time.monotonic()
    node.until(lambda: time.monotonic() > at_work_s + SILENT_S + 1, START_S)
    assert {part.state for part in node.told.values()} == {"ok"}, node.told
    before = {name: part.failures for name, part in node.told.items()}
    node.events.clear()
    # WHEN all are broken
    breaks(way)
    for running in parts.values():
        os.kill(running.victim, signal.SIGUSR1)
    node.until(lambda: all(part.state != "ok" for part in node.told.values()), REPORT_S)
    # THEN each says how, and what can be done about one that is stopped
    state, why = REPORTED[way]
    for name, part in node.told.items():
        assert part.state == state, part
        assert re.fullmatch(why, part.why), part
        assert (part.fix.startswith("kill -CONT ")) == (way == "stop"), part
        assert part.failures > before[name], part
        assert not re.search("driver|locked|reboot|disk", part.why), part
        # AND the recording has a gap, an event and its reader a line
        assert node.sources.why(f"source of {name}") == f"the {name} {part.why}"
    assert sorted(event.fields["part"] for event in node.events if event.kind == KIND) == sorted(parts)
    assert len(node.lines) >= len(parts)


def test_the_names_are_those_that_others_look_for(parts: dict[str, Running]) -> None:
    assert LIVE_DIAGNOSIS in parts
    assert all(re.fullmatch("[A-Za-z -]+", name) for name in parts)
