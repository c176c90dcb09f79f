"""Whom the recorder looks at closer and how often, what it believes of the reader, and what file descriptors were."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from zombiescope.kernel import system_calls
from zombiescope.kernel.syscall_trace import Call
from zombiescope.recorder import closer_looks
from zombiescope.recorder.closer_look_reader import Descriptors, described_link, own_frame
from zombiescope.recorder.closer_looks import AGAIN_US, EVERY_US, MOST_AN_HOUR, MOST_CALLS, SOURCE, CloserLooks
from zombiescope.recorder.sources import Sources
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event
from zombiescope.symbols.python.walk import Frame

NOW_US = 1_760_000_000_000_000
ROW = ["read", "/proc/net/tcp", 71, 71_000, 14_000, 20_000, 994_000, 5000, 0, None, 1]


class Rows(Batch):
    def rows(self) -> list[dict[str, Any]]:
        table = schema.CLOSER_LOOKS
        return [dict(zip(table.names, row, strict=True)) for row in self._rows.get(table.number, [])]


class Process:
    """The reader, without one."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.said: list[dict[str, Any]] = []
        self.running, self.let_go = True, mock.Mock()

    def tell(self, _now_us: int, whom: dict[str, Any]) -> None:
        self.asked.append(whom)

    def listen(self) -> list[dict[str, Any]]:
        said, self.said = self.said, []
        return said


def looks(enabled: bool = True) -> tuple[CloserLooks, Process, Rows]:
    batch = Rows()
    made = CloserLooks(batch, Sources(), lambda ns: NOW_US + ns // 1000, enabled=enabled)
    process = Process()
    made.process = process  # type: ignore[assignment]  # a stand-in
    return made, process, batch


def message(**more: Any) -> dict[str, Any]:
    return {
        "pid": 70, "start_ticks": 5, "began_us": 1, "ended_us": 900_000, "comm": "agent", "threads": 1, "state": "R",
        "wchan": None, "file": "srv/agent.py", "line": 132, "function": "poll", "why": "", "calls_per_s": 72,
        "calls": [ROW], **more,
    }  # fmt: skip


def test_each_suspect_is_looked_at_once_and_there_is_time_between_two() -> None:
    one, process, _ = looks()
    one.suspect([(70, 5), (71, 6)], NOW_US)
    for second in range(60):
        now_us = NOW_US + second * 1_000_000
        one.suspect([(70, 5), (71, 6)], now_us)
        one.second(now_us)
    assert process.asked == [{"pid": 70, "start_ticks": 5}, {"pid": 71, "start_ticks": 6}]
    one.suspect([(70, 5)], NOW_US + AGAIN_US)
    one.second(NOW_US + AGAIN_US + EVERY_US)
    assert len(process.asked) == 3


def test_a_number_that_is_another_process_by_now_is_another_suspect() -> None:
    one, process, _ = looks()
    for ticks in (5, 9):
        one.suspect([(70, ticks)], NOW_US + ticks * EVERY_US)
        one.second(NOW_US + ticks * EVERY_US)
    assert [asked["start_ticks"] for asked in process.asked] == [5, 9]


def test_an_hour_has_so_many_looks_and_no_more() -> None:
    one, process, _ = looks()
    for number in range(2 * MOST_AN_HOUR):
        one.suspect([(100 + number, 1)], NOW_US + number * EVERY_US)
        one.second(NOW_US + number * EVERY_US)
    assert len(process.asked) == MOST_AN_HOUR


def test_switched_off_nobody_is_looked_at() -> None:
    one, process, _ = looks(enabled=False)
    one.suspect([(70, 5)], NOW_US)
    one.second(NOW_US)
    assert process.asked == []


def test_a_look_is_rows_an_event_and_a_reason_to_diagnose_again() -> None:
    one, process, batch = looks()
    told: list[Event] = []
    again: list[int] = []
    one.tell, one.done = told.append, again.append
    process.said.append(message())
    one.second(NOW_US + 1_000_000)
    whole, call = batch.rows()
    assert (whole["call"], whole["file"], whole["line"], whole["function"]) == (None, "srv/agent.py", 132, "poll")
    assert (call["call"], call["object"], call["thousandths_per_s"], call["took_us"]) == (
        "read", "/proc/net/tcp", 71_000, 14_000,
    )  # fmt: skip
    assert (whole["begin"], whole["time"]) == (NOW_US + 1, NOW_US + 900_000)
    assert again == [NOW_US + 1]
    assert (told[0].kind, told[0].severity) == ("closer_look", "info")
    assert "agent (pid 70): read" in told[0].text


@pytest.mark.parametrize(
    "said",
    [
        {"began_us": -5}, {"pid": "70"}, {"ended_us": 10**15}, {"calls": "x"}, {"calls": [[1] * 11]},
        {"calls": [["read"]]}, {"calls": [[*ROW[:2], -1, True, 1.5, {}, [], None, "x", 7, 2**80]]},
        {"state": "\x1b[2J"}, {"comm": ["x"]}, {"why": 7}, {"line": "x"}, {"calls": [ROW] * 1000},
        {"function": "x" * 10**5},
    ],
)  # fmt: skip
def test_what_the_reader_says_is_checked(said: dict[str, Any]) -> None:
    one, process, batch = looks()
    process.said.append(message(**said))
    one.second(NOW_US + 1_000_000)
    rows = batch.rows()
    assert len(rows) <= MOST_CALLS + 1
    assert batch.take_blocks(NOW_US) is not None
    for row in rows:
        assert all(value is None or isinstance(value, int | str) for value in row.values())
        assert all(len(value) <= 300 for value in row.values() if isinstance(value, str))
        assert row["state"] in (None, "R")


def test_calls_that_may_not_be_followed_are_a_missing_source_with_its_remedy() -> None:
    one, process, _ = looks()
    process.said.append(message(why="system calls were not followed: Permission denied", calls=[]))
    one.second(NOW_US + 1_000_000)
    (missing,) = one._sources.missing
    assert missing.source == SOURCE
    assert "CAP_PERFMON" in missing.grant
    process.said.append(message())
    one.second(NOW_US + 2_000_000)
    assert not one._sources.missing


def test_the_reader_goes_when_nobody_was_looked_at_for_a_while() -> None:
    one, process, _ = looks()
    one.suspect([(70, 5)], NOW_US)
    one.second(NOW_US)
    process.said.append(message())
    one.second(NOW_US + 1_000_000)
    assert not process.let_go.called
    one.second(NOW_US + closer_looks.IDLE_US + 1_000_000)
    assert process.let_go.called


# --- descriptors -----------------------------------------------------------------------------------------------------

(OPEN,) = (number for number, name in system_calls.numbers("x86_64").items() if name == "openat")
(CLOSE,) = (number for number, name in system_calls.numbers("x86_64").items() if name == "close")


@pytest.fixture
def x86(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_calls, "_HERE", system_calls.numbers("x86_64"))


def opened(at_ns: int, descriptor: int, words: int) -> Call:
    return Call(OPEN, (0xFFFFFF9C, words, 0, 0, 0, 0), at_ns - 1, at_ns, descriptor)


def closed(at_ns: int, descriptor: int) -> Call:
    return Call(CLOSE, (descriptor, 0, 0, 0, 0, 0), at_ns, at_ns + 1, 0)


@pytest.mark.usefixtures("x86")
def test_a_number_that_is_opened_again_is_another_file() -> None:
    """Two files take turns behind descriptor 3; the third open was too short to be seen, and has the words of the
    first."""
    seen = Descriptors()
    seen.saw(3, 15, "/a")
    seen.saw(3, 35, "/b")
    seen.learn([opened(10, 3, 7), closed(20, 3), opened(30, 3, 8), closed(40, 3), opened(41, 3, 7), closed(43, 3)])
    assert [seen.link(3, at) for at in (12, 32, 42)] == ["/a", "/b", "/a"]
    assert seen.link(9, 12) is None


@pytest.mark.usefixtures("x86")
def test_words_that_were_several_files_say_nothing_and_the_nearest_in_time_does() -> None:
    seen = Descriptors()
    seen.saw(3, 15, "/a")
    seen.saw(3, 35, "/b")
    seen.learn([opened(10, 3, 7), closed(20, 3), opened(30, 3, 7), closed(36, 3), opened(38, 3, 7), closed(43, 3)])
    assert seen.link(3, 42) == "/b"


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("socket:[12]", "a socket"), ("pipe:[3]", "a pipe"), ("anon_inode:[eventpoll]", "an eventpoll descriptor"),
        ("/proc/70/net/tcp", "/proc/net/tcp"), ("/proc/70/smaps", "/proc/self/smaps"),
        ("/proc/71/stat", "/proc/71/stat"),
        ("/tmp/a?token=abcdefghijklmnop12345", "/tmp/a?token=***"), ("/tmp/\x1b[2J", "/tmp/\\x1b[2J"),
    ],
)  # fmt: skip
def test_a_descriptor_is_said_as_people_know_it_and_without_secrets(link: str, said: str) -> None:
    assert described_link(link, 70) == said


def test_the_line_is_the_programs_own_and_not_a_librarys() -> None:
    own, library = Frame("poll", "/srv/agent.py", 132), Frame("read_text", "/usr/lib/python3.11/pathlib.py", 1058)
    assert own_frame((Frame("<module>", "/srv/agent.py", 1), own, library)) == own
    assert own_frame((library,)) == library


# --- the calls themselves ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("x86")
@pytest.mark.parametrize(
    ("call", "args", "returned", "said"),
    [
        ("read", [3], 10, "/a"), ("read", [0xFFFFFFFF], -9, None), ("openat", [0xFFFFFF9C, 1], 3, "/a"),
        ("openat", [0xFFFFFF9C, 1], -2, None), ("mmap", [0, 4096, 3, 0x22, 0xFFFFFFFF], 1, "4 kB"),
        ("mmap", [0, 4096, 3, 1, 3], 1, "/a"), ("munmap", [7, 1 << 20], 0, "1 MB"), ("kill", [4711, 9], -3, "pid 4711"),
        ("sched_yield", [], 0, None), ("futex", [1, 128], 0, "wait"), ("sendfile", [3, 4], 1, "/b to /a"),
        ("newfstatat", [0xFFFFFF9C], 0, None), ("newfstatat", [3], 0, "/a"), ("socket", [2, 1], -24, "AF_INET"),
    ],
)  # fmt: skip
def test_what_a_call_works_on_is_told_by_its_numbers(
    call: str, args: list[int], returned: int, said: str | None
) -> None:
    paths = {3: "/a", 4: "/b"}
    assert system_calls.object_of(call, args + [0] * (6 - len(args)), returned, paths.get) == said


def test_numbers_have_the_names_that_seccomp_filters_know() -> None:
    from zombiescope.base.confinement import CALLS

    for at, machine in enumerate(("x86_64", "aarch64")):
        known = system_calls.numbers(machine)
        for name, numbers in CALLS.items():
            assert known[numbers[at]] == name, machine
    assert system_calls.numbers("riscv128") == {}
    assert system_calls.name(99_999) == "call 99999"
