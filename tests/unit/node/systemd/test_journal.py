from __future__ import annotations

import json
import select
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from zombiescope.kernel.kmsg import KmsgRecord
from zombiescope.node.systemd.journal import JournalFollower, has_system_journal, parse

ENTRY = {
    "_TRANSPORT": "kernel",
    "PRIORITY": "4",
    "SYSLOG_FACILITY": "0",
    "SYSLOG_IDENTIFIER": "kernel",
    "MESSAGE": "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kubelet:77]",
    "_SOURCE_MONOTONIC_TIMESTAMP": "2523097313",
    "__REALTIME_TIMESTAMP": "1794733118024045",
}


def entry(**changes: object) -> bytes:
    return json.dumps({key: value for key, value in {**ENTRY, **changes}.items() if value is not None}).encode()


def test_an_entry_of_the_kernel() -> None:
    text = "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kubelet:77]"
    assert parse(entry()) == KmsgRecord(4, 0, None, 2_523_097_313, text)


def test_an_entry_that_a_process_wrote_into_the_kernel_log() -> None:
    record = parse(entry(SYSLOG_FACILITY="5"))
    assert record is not None
    assert record.from_kernel is False


def test_a_message_that_is_not_utf8_comes_as_numbers() -> None:
    record = parse(entry(MESSAGE=[104, 105, 255]))
    assert record is not None
    assert record.text == "hi\\xff"


def test_missing_fields_are_not_known() -> None:
    record = parse(entry(PRIORITY=None, SYSLOG_FACILITY=None, _SOURCE_MONOTONIC_TIMESTAMP=None))
    assert record is not None
    assert (record.level, record.from_kernel, record.time_us) == (None, None, None)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"-- No entries --",
        b"[]",
        b"{}",
        entry(MESSAGE=None),
        entry(MESSAGE=[999]),
        entry(_TRANSPORT="syslog"),
    ],
)
def test_what_is_no_kernel_record(line: bytes) -> None:
    assert parse(line) is None


@pytest.fixture
def followers() -> Iterator[list[JournalFollower]]:
    made: list[JournalFollower] = []
    yield made
    for follower in made:
        follower.close()


def follow(followers: list[JournalFollower], script: str) -> JournalFollower:
    """The follower with a shell script in the place of journalctl."""
    follower = JournalFollower(["sh", "-c", script])
    followers.append(follower)
    return follower


def read_until(follower: JournalFollower, count: int) -> list[str]:
    texts: list[str] = []
    end = time.monotonic() + 5
    while len(texts) < count and time.monotonic() < end:
        if follower.fileno() >= 0:
            select.select([follower], [], [], 0.1)
        texts += [record.text for record in follower.read()[0]]
    return texts


def test_lines_are_read_whole_even_when_they_come_in_pieces(followers: list[JournalFollower]) -> None:
    script = """printf '{"MESSAGE":"one"}\\n{"MESS'; sleep 0.2; printf 'AGE":"two"}\\n'; exec sleep 60"""
    assert read_until(follow(followers, script), 2) == ["one", "two"]


def test_reading_does_not_wait(followers: list[JournalFollower]) -> None:
    follower = follow(followers, "exec sleep 600")
    assert follower.read() == ([], 0)  # a read that waited would end with the test's limit


def test_a_child_that_ends_is_started_again(followers: list[JournalFollower], tmp_path: object) -> None:
    follower = follow(followers, """echo '{"MESSAGE":"again"}'""")
    assert read_until(follower, 2) == ["again", "again"]


def test_a_child_that_ended_is_reported_with_what_to_do(followers: list[JournalFollower]) -> None:
    follower = follow(followers, "exit 1")
    end = time.monotonic() + 5
    while follower.failure is None and time.monotonic() < end:
        follower.read()
    assert follower.failure is not None
    assert "systemd-journal" in str(follower.failure)
    assert follower.fileno() == -1


def test_no_journalctl_is_reported_not_raised() -> None:
    follower = JournalFollower(["/nonexistent/journalctl"])
    assert follower.failure is not None
    assert follower.read() == ([], 0)
    follower.close()


def test_a_journal_counts_only_where_it_can_be_read(tmp_path: Path) -> None:
    assert not has_system_journal(str(tmp_path))
    place = tmp_path / "var/log/journal/abc"
    place.mkdir(parents=True)
    (place / "user-1000.journal").write_bytes(b"")
    assert not has_system_journal(str(tmp_path))
    (place / "system.journal").write_bytes(b"")
    assert has_system_journal(str(tmp_path))
