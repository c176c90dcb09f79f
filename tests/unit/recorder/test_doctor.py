"""The doctor as the recorder sees it: asked without waiting, replaced when it fails, and that is said."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from zombiescope.base.python import STEADY
from zombiescope.recorder.doctor import BEFORE_US, FIRST_RETRY_US, MOST_US, Doctor
from zombiescope.recorder.doctor_process import ANSWER_S, ENVIRONMENT, DoctorProcess
from zombiescope.recorder.heartbeats import Heartbeats
from zombiescope.recorder.look_schedule import FIRST_LOOK_US, LOOKS_US
from zombiescope.recorder.piped_process import KILL_S, SILENT_S
from zombiescope.recorder.sources import Sources
from zombiescope.store.event import Event

MODULE = "zombiescope_doctor_of_a_test"
SECOND_US = 1_000_000
DEADLINE_S = 20.0

READY = "import json, os, sys, time\nprint(json.dumps({'ready': True}), flush=True)\n"
ANSWERS = READY + (
    "for line in sys.stdin:\n"
    "    open(sys.argv[1] + '/asked', 'a').write(line)\n"
    "    print(json.dumps({'cpu_us': 1000, 'total_cpu_us': 5000, 'rss_bytes': 7, 'new': 1, 'open': 2, 'serious': 1,"
    " 'exit': 0}), flush=True)\n"
)
DIES_WHEN_ASKED = READY + "sys.stdin.readline()\nos.kill(os.getpid(), 9)\n"
HANGS_WHEN_ASKED = READY + "sys.stdin.readline()\ntime.sleep(600)\n"
FAILS = READY + "for _ in sys.stdin: print(json.dumps({'cpu_us': 1000, 'exit': 1, 'why': 'no room'}), flush=True)\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module that the doctor runs, on PYTHONPATH."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder / f"{MODULE}.py"


class Watched(Doctor):
    """With heartbeats that are judged every second, and a clock that can be moved on."""

    def __init__(self, node_dir: Path) -> None:
        super().__init__(node_dir)
        self.process = DoctorProcess(node_dir, MODULE)
        self.ahead_s = 0.0
        self.process.clock = lambda: time.monotonic() + self.ahead_s
        self.sources, self.told = Sources(), list[Event]()
        self._beats = Heartbeats(self.sources, self.told.append)
        self._beats.add_process(self.process, "incidents are not detected", source="live diagnosis")

    def second(self, now_us: int) -> None:
        super().second(now_us)
        self._beats.judge(now_us)


@pytest.fixture
def doctor(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    yield made
    made.process.stop()


def turns(doctor: Doctor, now_s: int, until: Callable[[], bool]) -> None:
    """Seconds of the recorder, all of them the same one, until something is so."""
    end = time.monotonic() + DEADLINE_S
    while not until():
        assert time.monotonic() < end, "it never came"
        doctor.second(now_s * SECOND_US)
        time.sleep(0.01)


def has_looked(doctor: Doctor, times: int) -> bool:
    return doctor.process.looks >= times and doctor.process.free


def has_failed(doctor: Watched, times: int) -> bool:
    return doctor.process.pulse.failures >= times and not doctor.process.running


def suspicious(doctor: Watched, at_s: int) -> None:
    doctor.alarm.event(at_s * SECOND_US, "oom_kill", "critical")


def events(doctor: Watched) -> list[Event]:
    return doctor.told


def test_the_recorders_heap_is_not_the_doctors(
    program: Path, doctor: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorder gives every large block back at once. A look that did so would spend a third of its time on it."""
    for name, value in STEADY.items():
        monkeypatch.setenv(name, value)
    said = "import json, os, sys\njson.dump(dict(os.environ), open(sys.argv[1] + '/given', 'w'))\n"
    program.write_text(said + ANSWERS)
    turns(doctor, 1, lambda: doctor.process.ready)
    given = json.loads((tmp_path / "given").read_text())
    assert {name: given[name] for name in ENVIRONMENT} == ENVIRONMENT
    assert int(given["MALLOC_MMAP_THRESHOLD_"]) > int(STEADY["MALLOC_MMAP_THRESHOLD_"])


def test_it_is_started_once_and_asked_when_something_is_suspicious(
    program: Path, doctor: Watched, tmp_path: Path
) -> None:
    program.write_text(ANSWERS)
    turns(doctor, 100, lambda: doctor.process.free)
    pid = doctor.process._pid
    suspicious(doctor, 101)
    for now_s in (104, 120):
        before = doctor.process.looks
        turns(doctor, now_s, partial(has_looked, doctor, before + 1))
    asked = [int(line) for line in (tmp_path / "asked").read_text().split()]
    assert asked == [101 * SECOND_US - BEFORE_US] * 2
    assert doctor.process._pid == pid
    assert (doctor.process.cpu_us, doctor.process.peak_rss_bytes) == (5000, 7)


def test_what_lasts_for_hours_is_not_looked_at_for_hours(program: Path, doctor: Watched, tmp_path: Path) -> None:
    program.write_text(ANSWERS)
    turns(doctor, 1, lambda: doctor.process.free)
    for second in range(2, 1000):
        doctor.alarm.core(second * SECOND_US, 3, SECOND_US, 990)
        doctor.alarm.due(second * SECOND_US)
    doctor.alarm.schedule.alive["core 3"].next_us = 0
    doctor.alarm.core(1000 * SECOND_US, 3, SECOND_US, 990)
    turns(doctor, 1000, lambda: doctor.process.looks > 0 and doctor.process.free)
    assert (tmp_path / "asked").read_text().split() == [str(1000 * SECOND_US - MOST_US)]


def test_its_answer_reaches_the_alarm(program: Path, doctor: Watched) -> None:
    program.write_text(ANSWERS)
    turns(doctor, 100, lambda: doctor.process.free)
    suspicious(doctor, 101)
    before_us = doctor.alarm.schedule.budget.left_us
    turns(doctor, 104, lambda: doctor.alarm.schedule.budget.left_us < before_us)
    assert (doctor.alarm.schedule._open, doctor.alarm.schedule._serious) == (2, 1)


def test_while_it_looks_the_next_look_waits(program: Path, doctor: Watched) -> None:
    program.write_text(HANGS_WHEN_ASKED)
    turns(doctor, 100, lambda: doctor.process.free)
    suspicious(doctor, 101)
    turns(doctor, 104, lambda: doctor.process.looks == 1)
    doctor.alarm.event(105 * SECOND_US, "soft_lockup", "critical")
    for now_s in range(105, 130):
        doctor.second(now_s * SECOND_US)
    assert doctor.process.looks == 1


def test_one_that_is_killed_is_said_started_again_and_asked_again(program: Path, doctor: Watched) -> None:
    program.write_text(DIES_WHEN_ASKED)
    told = events(doctor)
    turns(doctor, 100, lambda: doctor.process.free)
    program.write_text(ANSWERS)  # for the one after it, which is started as soon as this one has died
    suspicious(doctor, 101)
    turns(doctor, 104, lambda: bool(told))
    assert (told[0].kind, told[0].severity) == ("helper_failed", "warning")
    assert "SIGKILL" in told[0].text
    turns(doctor, 106, lambda: doctor.process.looks == 2 and doctor.process.free)
    assert len(told) == 1


def test_one_that_always_dies_is_not_started_all_the_time(program: Path, doctor: Watched) -> None:
    program.write_text("raise SystemExit(3)")
    told = events(doctor)
    for number, now_s in enumerate((100, 101, 103, 107), 1):
        turns(doctor, now_s, partial(has_failed, doctor, number))
        doctor.second(now_s * SECOND_US + 1)
        assert doctor.process._pid is None, "again only after a second, two, four ..."
    (event,) = told
    assert "exit code 3" in event.text
    (missing,) = doctor.sources.missing
    assert (missing.source, missing.why) == ("live diagnosis", event.text)


def test_one_that_hangs_is_killed_and_replaced(program: Path, doctor: Watched) -> None:
    program.write_text(HANGS_WHEN_ASKED)
    told = events(doctor)
    turns(doctor, 100, lambda: doctor.process.free)
    suspicious(doctor, 101)
    turns(doctor, 104, lambda: doctor.process.looks == 1)
    program.write_text(ANSWERS)
    doctor.ahead_s = SILENT_S + 1
    turns(doctor, 105, lambda: bool(told))
    assert told[0].fields["state"] == "hung"
    assert "has not got on in a diagnosis pass" in told[0].text
    doctor.ahead_s = ANSWER_S + 1
    turns(doctor, 106, lambda: doctor.process.looks == 2 and doctor.process.free)
    assert (len(told), doctor.sources.missing) == (1, [])


def test_a_look_that_failed_is_said_and_tried_at_its_next_time(program: Path, doctor: Watched) -> None:
    program.write_text(FAILS)
    told = events(doctor)
    turns(doctor, 100, lambda: doctor.process.free)
    suspicious(doctor, 101)
    turns(doctor, 104, lambda: bool(told))
    assert "no room" in told[0].text
    suspicious(doctor, 105)
    turns(doctor, 101 + (FIRST_LOOK_US + LOOKS_US[0]) // SECOND_US, lambda: doctor.process.looks == 2)


def test_a_doctor_that_cannot_be_started_is_an_error_and_the_look_is_not_lost(
    program: Path, doctor: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.write_text(ANSWERS)

    def refuse(*_: object, **__: object) -> int:
        raise OSError(11, "Resource temporarily unavailable")

    suspicious(doctor, 101)
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_spawn", refuse)
        with pytest.raises(OSError, match="unavailable"):
            doctor.second(104 * SECOND_US)
    turns(doctor, 106, lambda: doctor.process.looks == 1)


def test_at_the_end_what_nobody_has_seen_is_looked_at(program: Path, doctor: Watched, tmp_path: Path) -> None:
    program.write_text(ANSWERS)
    turns(doctor, 100, lambda: doctor.process.free)
    suspicious(doctor, 101)
    doctor.second(102 * SECOND_US)
    doctor.stop(102 * SECOND_US)
    assert (tmp_path / "asked").read_text().split() == [str(101 * SECOND_US - BEFORE_US)]


def test_at_the_end_of_a_quiet_run_nobody_is_asked(program: Path, doctor: Watched, tmp_path: Path) -> None:
    program.write_text(ANSWERS)
    turns(doctor, 100, lambda: doctor.process.free)
    doctor.stop(102 * SECOND_US)
    assert not (tmp_path / "asked").exists()


def test_it_ends_with_whoever_started_it(program: Path, doctor: Watched) -> None:
    program.write_text(ANSWERS)
    turns(doctor, 100, lambda: doctor.process.free)
    os.close(doctor.process._to)
    told = events(doctor)
    turns(doctor, 101, lambda: bool(told))
    assert "ended by itself with exit code 0" in told[0].text


SELFTEST = READY.replace("{'ready': True}", "{'ready': True, 'selftest': {'ok': False, 'why': 'wrong'}}")


def test_a_failed_self_test_is_reported_and_passes_are_tried_all_the_same(program: Path, doctor: Watched) -> None:
    program.write_text(SELFTEST + ANSWERS.removeprefix(READY))
    turns(doctor, 100, lambda: doctor.process.free)
    assert doctor.process.part().state == "failed"
    assert doctor.process.part().why == "failed: self-test: wrong"
    assert [event.text for event in doctor.told] == ["the live diagnosis failed: self-test: wrong"]
    suspicious(doctor, 101)
    turns(doctor, 104, partial(has_looked, doctor, 1))
    assert doctor.process.part().state == "failed", "one pass that gives an answer proves nothing"


def test_a_pass_that_failed_is_tried_again_though_nothing_new_is_suspicious(program: Path, doctor: Watched) -> None:
    program.write_text(FAILS)
    turns(doctor, 100, lambda: doctor.process.free)
    suspicious(doctor, 101)
    turns(doctor, 104, lambda: doctor.process.part().state == "failed")
    assert doctor.process.part().why == "failed in a diagnosis pass: no room"
    turns(doctor, 120, lambda: True)
    before = doctor.process.looks
    turns(doctor, 104 + FIRST_RETRY_US // SECOND_US, partial(has_looked, doctor, before + 1))


def test_a_load_that_hangs_is_reported_and_one_that_gets_on_is_not(program: Path, doctor: Watched) -> None:
    step = "print(json.dumps({'beat': number, 'stage': 'pyarrow'}), flush=True)"
    program.write_text(f"import json, time\nfor number in range(20): {step}; time.sleep(0.02)\ntime.sleep(600)")
    turns(doctor, 100, lambda: doctor.process._step == (19, "pyarrow"))
    doctor.ahead_s = SILENT_S + 1
    turns(doctor, 101, lambda: bool(doctor.told))
    assert re.search(r"has been loading for \d+ s without getting on \(pyarrow\)", doctor.told[0].text)
    doctor.ahead_s = KILL_S + 5
    turns(doctor, 101, lambda: doctor.process.runs == 2)
    assert doctor.process.part().state == "hung", "until it works"
    assert doctor.process.part().why.endswith("it was killed")
