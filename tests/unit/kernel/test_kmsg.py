from __future__ import annotations

import errno
import os
import time
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zombiescope.kernel.kmsg import ClockOffset, KmsgReader, KmsgRecord, parse, parse_console


def test_a_record_of_the_kernel() -> None:
    record = parse(b"6,347,1588114479,-;python3[17804]: segfault at 0\n")
    assert record == KmsgRecord(6, 0, 347, 1588114479, "python3[17804]: segfault at 0")
    assert record.from_kernel is True


def test_a_record_written_by_a_process_is_not_the_kernels() -> None:
    # GIVEN priority 12: facility 1 (user), level 4
    record = parse(b"12,346,1588025815,-;ena 0000:20:03.0 eth0: Transmit time out\n")
    assert record is not None
    assert (record.level, record.facility, record.from_kernel) == (4, 1, False)


def test_ttyprintk_lets_a_process_write_with_facility_0() -> None:
    record = parse(b"6,1,1,-;[U] ena 0000:20:03.0 eth0: Transmit time out\n")
    assert record is not None
    assert record.from_kernel is False


def test_dictionary_lines_and_caller() -> None:
    record = parse(b"4,9,77,-,caller=T1234;usb 1-1: reset\n SUBSYSTEM=usb\n DEVICE=c189:1\n")
    assert record is not None
    assert record.text == "usb 1-1: reset"
    assert record.fields == {"SUBSYSTEM": "usb", "DEVICE": "c189:1", "CALLER": "T1234"}


def test_escapes_are_undone_but_control_characters_stay_escaped() -> None:
    record = parse(rb"6,1,1,-;rcu: \x094-....: a\x5cb \xc3\xa4 \x1b[31mred \xff" + b"\n")
    assert record is not None
    assert record.text == "rcu: \t4-....: a\\b \u00e4 \\x1b[31mred \\xff"


@pytest.mark.parametrize("raw", [b"", b"no record", b"6,1;short", b"x,1,2,-;text", b"6,,2,-;text"])
def test_what_is_no_record_is_none(raw: bytes) -> None:
    assert parse(raw) is None


@given(st.binary(max_size=300))
def test_parse_never_raises(raw: bytes) -> None:
    parse(raw)
    parse(b"6,1,1,-;" + raw)
    parse_console(raw)


@pytest.mark.parametrize(
    ("msg", "text"),
    [
        (b"python3[17951]: segfault at 0\0", "python3[17951]: segfault at 0"),
        (b"[   12.345678] eth0: link up", "eth0: link up"),
        (b"[   12.345678][  T123] eth0: link up\n", "eth0: link up"),
        (b" in libc.so.6", " in libc.so.6"),
        (b"[0.0]: tx{fw_ring: 0}", "[0.0]: tx{fw_ring: 0}"),
    ],
)
def test_console_tracepoint_text(msg: bytes, text: str) -> None:
    record = parse_console(msg)
    assert record is not None
    assert (record.text, record.level, record.from_kernel) == (text, None, None)


def test_the_piece_that_ends_a_continued_line_is_nothing() -> None:
    assert parse_console(b"") is None
    assert parse_console(b"\n\0") is None


class MockKmsgReader(KmsgReader):
    """A mock of the device: hands out the given records, and fails where an errno is given instead."""

    def __init__(self, *script: bytes | int, after_seq: int | None = None) -> None:
        super().__init__(os.devnull, after_seq)
        self.script = deque(script)

    def _read_record(self) -> bytes:
        if not self.script:
            raise BlockingIOError
        step = self.script.popleft()
        if isinstance(step, int):
            raise OSError(step, os.strerror(step))
        return step


def line(seq: int, time_us: int = 1) -> bytes:
    return b"6,%d,%d,-;line %d\n" % (seq, time_us, seq)


def seqs(records: list[KmsgRecord]) -> list[int | None]:
    return [record.seq for record in records]


def test_overwritten_records_are_counted_and_reading_goes_on() -> None:
    reader = MockKmsgReader(line(10), line(11), errno.EPIPE, line(5000), line(5001))
    records, lost = reader.read()
    assert seqs(records) == [10, 11, 5000, 5001]
    assert lost == 4988
    assert reader.read() == ([], 0)


def test_overwritten_again_and_again_is_still_no_end() -> None:
    reader = MockKmsgReader(line(1), errno.EPIPE, errno.EPIPE, line(9), errno.EPIPE, line(20))
    records, lost = reader.read()
    assert seqs(records) == [1, 9, 20]
    assert lost == 7 + 10


def test_overwritten_before_the_first_record_is_at_least_one() -> None:
    records, lost = MockKmsgReader(errno.EPIPE, line(100)).read()
    assert (seqs(records), lost) == ([100], 1)


def test_a_record_too_long_for_the_buffer_is_a_gap() -> None:
    records, lost = MockKmsgReader(line(1), errno.EINVAL, line(3)).read()
    assert (seqs(records), lost) == ([1, 3], 1)


def test_other_errors_are_not_swallowed() -> None:
    with pytest.raises(OSError, match="Input/output error"):
        MockKmsgReader(errno.EIO).read()


def test_a_flood_is_read_in_bounded_steps() -> None:
    reader = MockKmsgReader(*(line(seq) for seq in range(1200)))
    assert [len(reader.read()[0]) for _ in range(4)] == [500, 500, 200, 0]


def test_going_on_after_a_restart_of_the_recorder() -> None:
    reader = MockKmsgReader(*(line(seq) for seq in range(100)), after_seq=96)
    records, lost = reader.read()
    assert (seqs(records), lost) == ([97, 98, 99], 0)


def test_going_on_when_the_log_has_moved_past_it() -> None:
    records, lost = MockKmsgReader(line(50), line(51), after_seq=9).read()
    assert (seqs(records), lost) == ([50, 51], 40)


def test_a_number_of_another_boot_does_not_silence_the_reader() -> None:
    # GIVEN a log that ends long before the number we are to go on from
    reader = MockKmsgReader(line(1), line(2), after_seq=90_000)
    assert reader.read() == ([], 0)
    # WHEN the kernel logs again
    reader.script.append(line(3))
    # THEN it is read
    assert seqs(reader.read()[0]) == [3]


def test_the_offset_is_taken_only_from_records_read_live(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a reader that still has the past to read, at 10 s
    monkeypatch.setattr(time, "monotonic_ns", lambda: 10_000_000_000)
    reader = MockKmsgReader(line(1, 1_000_000), line(2, 9_990_000), after_seq=0)
    reader.read()
    assert (reader.clock.known, reader.clock.offset_ns) == (False, 0)
    # WHEN it has caught up and a record comes that was stamped 18 ms ago
    reader.script.append(line(3, 9_982_000))
    reader.read()
    # THEN that is the offset
    assert reader.clock.known
    assert reader.clock.offset_ns == 18_000_000
    assert reader.clock.to_monotonic_ns(5_000_000) == 5_018_000_000


SECOND_NS = 1_000_000_000


def test_the_smallest_difference_wins() -> None:
    clock = ClockOffset()
    for late_ns in (40_000_000, 17_300_000, 90_000_000):
        clock.observe(1_000_000, SECOND_NS + late_ns)
    assert clock.offset_ns == 17_300_000


def test_old_observations_are_forgotten_because_the_clocks_drift() -> None:
    clock = ClockOffset()
    clock.observe(1_000_000, SECOND_NS + 10_000_000)
    hour_us = 3600 * 1_000_000
    clock.observe(hour_us, hour_us * 1_000 + 15_000_000)
    assert clock.offset_ns == 15_000_000


def test_without_an_observation_the_offset_is_zero_and_says_so() -> None:
    clock = ClockOffset()
    assert (clock.known, clock.to_monotonic_ns(7)) == (False, 7_000)
