"""A pass that does not end in its time is followed by one that looks at less, and not by the same one again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from zombiescope.recorder.doctor import QUICK_US, SLOW_US, WINDOWS_US, Doctor, PassWindow
from zombiescope.recorder.doctor_process import DoctorProcess

MODULE = "zombiescope_standby_of_a_test"
SECOND_US = 1_000_000
DEADLINE_S = 30.0

KILLED_UNLESS_SHORT = (
    "import json, sys\n"
    "print(json.dumps({'ready': True}), flush=True)\n"
    "for line in sys.stdin:\n"
    "    open(sys.argv[1] + '/asked', 'a').write(line)\n"
    "    short = %d - int(line) <= %d\n"
    "    answer = {'new': 1, 'open': 7, 'serious': 1, 'exit': 0} if short else {'exit': -9}\n"
    "    print(json.dumps({'cpu_us': 1000, **answer}), flush=True)\n"
)
"""As a pass on a machine that has too little CPU time for a long window: killed when its minute is over."""


def test_after_a_pass_that_failed_the_next_looks_at_less_until_one_works() -> None:
    window, lengths = PassWindow(), []
    now_us = 1_000 * SECOND_US
    for _ in range(6):
        lengths.append(now_us - window.asked(now_us, 0))
        window.failed()
    assert lengths[0] == WINDOWS_US[0][1]
    assert lengths[1] <= lengths[0] / 4
    assert lengths[3] == lengths[5] == WINDOWS_US[-1][1], "it never looks at nothing"


def test_a_slow_pass_makes_the_next_one_shorter_and_quick_ones_make_it_long_again() -> None:
    window = PassWindow()
    window.asked(0, 0)
    window.worked(SLOW_US + 1)
    assert window.level == 1
    window.asked(0, 0)
    window.worked(QUICK_US + 1)
    assert window.level == 1, "it fits: no reason to change it"
    for _ in range(3):
        window.asked(0, 0)
        window.worked(QUICK_US)
    assert window.level == 0
    window.asked(100, 0)
    window.worked(0)
    assert window.level == 0, "the clock was set back"


@pytest.fixture
def doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Doctor]:
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    made = Doctor(tmp_path)
    made.process = DoctorProcess(tmp_path, MODULE)
    yield made
    made.process.stop()


def test_what_is_wrong_for_minutes_is_named_on_a_machine_on_which_a_long_pass_never_ends(
    doctor: Doctor, tmp_path: Path
) -> None:
    """Seen on an emulated node: a core held for three minutes, four passes killed after a minute each, nothing named.
    Every pass looked at as much as the one before it, and more."""
    now_s = 1_000
    program = KILLED_UNLESS_SHORT % (now_s * SECOND_US, 20 * SECOND_US)
    (tmp_path / "path" / f"{MODULE}.py").write_text(program)
    end = time.monotonic() + DEADLINE_S
    while doctor.alarm.schedule._open != 7:
        assert time.monotonic() < end, "no pass ended"
        if doctor.process.free:
            doctor._wait((now_s - 180) * SECOND_US)
        doctor.second(now_s * SECOND_US)
        time.sleep(0.01)
    asked = [now_s * SECOND_US - int(line) for line in (tmp_path / "asked").read_text().split()]
    assert asked == sorted(asked, reverse=True)
    assert len(asked) <= len(WINDOWS_US)
