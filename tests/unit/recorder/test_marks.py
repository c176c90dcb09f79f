"""Marks come from anybody: who sent one is the kernel's word, and nobody can flood or break the recording."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from zombiescope.recorder.marks import MAX_A_SECOND, MAX_OF_A_USER, MAX_TEXT, MarkSocket
from zombiescope.recorder.recorder import Recorder
from zombiescope.recorder.sources import Sources

NOW_US = 1_790_000_000_000_000


@pytest.fixture
def marks(tmp_path: Path) -> Iterator[MarkSocket]:
    made = MarkSocket(tmp_path / "mark.sock")
    yield made
    made.close()


@pytest.fixture
def sender(marks: MarkSocket) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as made:
        made.connect(str(marks.path))
        yield made


def test_who_sent_it_is_told_by_the_kernel(marks: MarkSocket, sender: socket.socket) -> None:
    sender.send(json.dumps({"text": "epoch 12", "pid": 1}).encode())
    [event] = marks.read(NOW_US)
    assert (event.at_us, event.kind, event.text) == (NOW_US, "mark", "epoch 12")
    assert event.fields["pid"] == os.getpid()
    assert event.fields["uid"] == os.getuid()


@pytest.mark.parametrize(
    ("at_us", "stored"),
    [(NOW_US - 5_000_000, NOW_US - 5_000_000), (NOW_US - 3_600_000_000, NOW_US), ("now", NOW_US), (True, NOW_US)],
    ids=["near", "an hour ago", "no number", "a truth"],
)
def test_a_mark_belongs_near_the_moment_it_was_sent(
    marks: MarkSocket, sender: socket.socket, at_us: object, stored: int
) -> None:
    sender.send(json.dumps({"text": "x", "at_us": at_us}).encode())
    assert [event.at_us for event in marks.read(NOW_US)] == [stored]


@pytest.mark.parametrize("data", [b"", b"text", b"[]", b"17", b"{}", b'"text"', b"\xff\xfe", b"[" * 3000])
def test_what_is_no_mark_is_refused(marks: MarkSocket, sender: socket.socket, data: bytes) -> None:
    sender.send(data)
    assert marks.read(NOW_US) == []
    assert marks.refused == 1


def test_a_text_that_is_no_unicode_can_be_written_all_the_same(marks: MarkSocket, sender: socket.socket) -> None:
    sender.send(b'{"text": "half a pair \\ud83d"}')
    [event] = marks.read(NOW_US)
    assert event.text.encode() == b"half a pair ?"


def test_a_long_text_is_cut(marks: MarkSocket, sender: socket.socket) -> None:
    sender.send(json.dumps({"text": "x" * 3000}).encode())
    assert len(marks.read(NOW_US)[0].text) == MAX_TEXT


def test_a_sender_that_talks_too_much_is_cut_off_until_the_next_second(
    marks: MarkSocket, sender: socket.socket
) -> None:
    taken = 0
    for _ in range(3 * MAX_A_SECOND):
        sender.send(b'{"text": "again"}')
        taken += len(marks.read(NOW_US))
    assert (taken, marks.refused) == (MAX_OF_A_USER, 3 * MAX_A_SECOND - MAX_OF_A_USER)
    marks.second()
    sender.send(b'{"text": "again"}')
    assert len(marks.read(NOW_US)) == 1


def test_a_socket_left_behind_is_replaced_and_its_own_removed(tmp_path: Path) -> None:
    first = MarkSocket(tmp_path / "mark.sock")
    second = MarkSocket(tmp_path / "mark.sock")
    second.close()
    first.close()
    assert not (tmp_path / "mark.sock").exists()


def test_descriptors_that_come_with_a_mark_are_not_kept(marks: MarkSocket, sender: socket.socket) -> None:
    def open_ones() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = open_ones()
    with Path(os.devnull).open() as given:
        for _ in range(8):
            socket.send_fds(sender, [b'{"text": "with presents"}'], [given.fileno()] * 5)
            assert len(marks.read(NOW_US)) == 1
    assert open_ones() == before


# --- where it listens -------------------------------------------------------------------------------------------------


def opened(runtime: Path) -> SimpleNamespace:
    """What a recorder knows after it tried to listen there."""
    recorder = SimpleNamespace(intake=SimpleNamespace(marks=None), sources=Sources(), started_us=0)
    Recorder.open_marks(recorder, runtime / "mark.sock")  # type: ignore[arg-type]
    if hasattr(recorder, "feed"):
        recorder.feed.close()
    return recorder


def test_a_directory_that_somebody_made_beforehand_is_not_listened_in(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    planted, shared = tmp_path / "zombiescope-0", tmp_path / "shared"
    planted.symlink_to(elsewhere)
    shared.mkdir()
    shared.chmod(0o777)
    for runtime in (planted, shared):
        recorder = opened(runtime)
        assert recorder.intake.marks is None
        (missing,) = recorder.sources.missing
        assert str(runtime) in missing.why
        assert str(runtime) in missing.grant
    assert list(elsewhere.iterdir()) == list(shared.iterdir()) == []


def test_its_own_directory_is_made_for_everybody_to_send_to(tmp_path: Path) -> None:
    recorder = opened(tmp_path / "run/zombiescope")
    assert recorder.sources.missing == []
    recorder.intake.marks.close()
    assert (tmp_path / "run/zombiescope").stat().st_mode & 0o777 == 0o755
