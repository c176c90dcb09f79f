"""A process is read whole once, and after that only asked where it is: over segments, and for all its threads."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from zombiescope.kernel import process
from zombiescope.recorder import lookup
from zombiescope.recorder.lookup import KnownProcesses


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_age_s", lambda _: 60.0)


def test_a_thousand_questions_read_a_command_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    known, read = KnownProcesses("/"), []
    whole = process.read

    def counted(pid: int, root: str) -> process.Process | None:
        read.append(pid)
        return whole(pid, root)

    monkeypatch.setattr(process, "read", counted)
    first = known.read(os.getpid())
    assert first is not None
    for _ in range(1000):
        found = known.read(os.getpid())
        assert found is not None
        assert found.cmdline == first.cmdline
    assert read == [os.getpid()]
    assert known.reused == 1000


@pytest.mark.parametrize("changed", [{"start_time_ticks": 1}, {"comm": "another"}, {"ppid": 2**22 - 1}])
def test_a_pid_that_was_given_again_or_has_another_name_or_parent_is_read_whole(changed: dict[str, object]) -> None:
    known = KnownProcesses("/")
    first = known.read(os.getpid())
    assert first is not None
    known._known[os.getpid()] = replace(first, cmdline="of before", **changed)  # type: ignore[arg-type]
    again = known.read(os.getpid())
    assert again is not None
    assert again.cmdline == first.cmdline
    assert known.reused == 0


def test_a_young_process_is_read_whole_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be about to execute another program of the same name."""
    monkeypatch.setattr(lookup, "_age_s", lambda _: 0.1)
    known = KnownProcesses("/")
    for _ in range(3):
        known.read(os.getpid())
    assert known.reused == 0
    assert not known._known


def test_one_that_is_gone_is_nobody() -> None:
    assert KnownProcesses("/").read(2**22 - 1) is None


def test_threads_of_one_process_check_it_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel adds up all threads of a process for its stat."""
    known, checked = KnownProcesses("/"), []
    again = process.read_again

    def counted(one: process.Process, root: str) -> process.Process | None:
        checked.append(one.pid)
        return again(one, root)

    monkeypatch.setattr(process, "read_again", counted)
    now_s = [100.0]
    monkeypatch.setattr("zombiescope.recorder.lookup.time.monotonic", lambda: now_s[0])
    for _ in range(500):
        known.read(os.getpid())
    assert len(checked) == 1
    now_s[0] += lookup.FRESH_S
    known.read(os.getpid())
    assert len(checked) == 2
    assert len(known._checked_s) == 1
