from __future__ import annotations

import errno

import pytest

from zombiescope.kernel import syslog
from zombiescope.kernel.kmsg import KmsgRecord
from zombiescope.kernel.syslog import SyslogReader, parse


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("<4>[   12.345678] text", KmsgRecord(4, 0, None, 12_345_678, "text")),
        ("<12>[ 1602.855938] from a process", KmsgRecord(4, 1, None, 1_602_855_938, "from a process")),
        ("<6>[    0.000001][    T0] text", KmsgRecord(6, 0, None, 1, "text", {"CALLER": "T0"})),
        ("<6>printk.time is off", KmsgRecord(6, 0, None, None, "printk.time is off")),
        ("<6>[0.0]: tx{fw_ring: 0}", KmsgRecord(6, 0, None, None, "[0.0]: tx{fw_ring: 0}")),
    ],
)
def test_lines(line: str, expected: KmsgRecord) -> None:
    assert parse(line) == expected


def test_the_end_of_a_cut_line_is_no_record() -> None:
    assert parse("345678] text") is None


class MockLog:
    """A mock of SYSLOG_ACTION_READ_ALL: the last `size` bytes of what was logged."""

    def __init__(self, size: int = 10_000) -> None:
        self.text = b""
        self.size = size

    def log(self, *texts: str) -> None:
        for text in texts:
            self.text += f"<6>[    1.000001] {text}\n".encode()

    def __call__(self) -> bytes:
        return self.text[-self.size :]


def read(reader: SyslogReader) -> tuple[list[str], int]:
    records, lost = reader.read()
    return [record.text for record in records], lost


def test_only_what_is_new_is_read() -> None:
    log = MockLog()
    log.log("before us")
    reader = SyslogReader(log)
    assert read(reader) == ([], 0)
    log.log("a", "b")
    assert read(reader) == (["a", "b"], 0)
    assert read(reader) == ([], 0)


def test_the_same_line_twice_is_two_lines() -> None:
    log = MockLog()
    log.log("x", "same")
    reader = SyslogReader(log)
    log.log("same", "same")
    assert read(reader) == (["same", "same"], 0)


def test_an_empty_log_at_the_start() -> None:
    log = MockLog()
    reader = SyslogReader(log)
    log.log("first")
    assert read(reader) == (["first"], 0)


def test_a_full_turn_of_the_ring_is_a_gap() -> None:
    log = MockLog(size=200)
    log.log("old")
    reader = SyslogReader(log)
    log.log(*(f"line {number}" for number in range(100)))
    texts, lost = read(reader)
    assert lost == 1
    assert texts[-1] == "line 99"
    log.log("line 100")
    assert read(reader) == (["line 100"], 0)


def test_not_permitted_says_what_to_grant() -> None:
    error = syslog._explained(errno.EPERM)
    assert isinstance(error, PermissionError)
    assert "CAP_SYSLOG" in str(error)
    assert "kernel.dmesg_restrict=0" in str(error)
