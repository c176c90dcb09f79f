"""The recorder goes first where it may: all its threads, and its doctor.

Of the other children test_habits.py sees that each is started where anybody would be.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording

from zombiescope.diagnosis.standby import PRIORITY
from zombiescope.recorder.priority import WANTED

pytestmark = pytest.mark.kernel

MAY_NOT = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
NICE = 19
"""The place of the nice value in /proc/PID/stat, counted from 1."""


def nice_of(stat: Path) -> int:
    return int(stat.read_text().rpartition(")")[2].split()[NICE - 3])


def threads_of(pid: int) -> dict[str, int]:
    return {place.name: nice_of(place / "stat") for place in Path(f"/proc/{pid}/task").iterdir()}


def child_that_runs(pid: int, module: str) -> int:
    for _ in range(200):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with suppress(FileNotFoundError, ProcessLookupError):
                if module.encode() in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
                    return int(child)
        time.sleep(0.05)
    raise AssertionError(f"no child runs {module}")


def values_until(stat: Path, wanted: int) -> set[int]:
    """The nice values that a process was seen with, until it had this one."""
    seen: set[int] = set()
    for _ in range(400):
        seen.add(nice_of(stat))
        if wanted in seen:
            break
        time.sleep(0.05)
    return seen


def test_threads_are_raised_together_and_so_is_the_doctor_once_it_is_loaded(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    if os.nice(0) != 0:
        needs.lack("needs to be started without a nice value")
    with recording(tmp_path / "r", diagnose=True) as recorder:
        assert set(threads_of(recorder.pid).values()) == {WANTED}
        assert len(threads_of(recorder.pid)) > 1
        doctor = child_that_runs(recorder.pid, "zombiescope.diagnosis.standby")
        assert values_until(Path(f"/proc/{doctor}/stat"), PRIORITY) <= {0, PRIORITY}
        assert nice_of(Path(f"/proc/{doctor}/stat")) == PRIORITY


@pytest.mark.parametrize(("prefix", "nice"), [(MAY_NOT, 0), (("nice", "-n", "5"), 5)])
def test_without_the_right_or_with_a_value_of_its_own_it_stays(
    needs: Needs, tmp_path: Path, prefix: tuple[str, ...], nice: int
) -> None:
    needs.root()
    with recording(tmp_path / "r", prefix=prefix) as recorder:
        assert set(threads_of(recorder.pid).values()) == {nice}
