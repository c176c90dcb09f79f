"""Which way into the kernel log is taken, what its lines may become, and what is said to be missing."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from zombiescope.kernel.kmsg import KmsgRecord
from zombiescope.kernel.syslog import SyslogReader
from zombiescope.recorder import kernel_log
from zombiescope.recorder.clock import WallClock
from zombiescope.recorder.kernel_log import KernelLog
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.tracepoints import Fields, TraceRecord

RESET = "ena 0000:00:05.0 eth0: Keep alive watchdog timeout."


class Ways:
    """Which of the ways are open."""

    def __init__(self) -> None:
        self.log = b""
        self.refusal: int | None = None

    def copy(self) -> bytes:
        if self.refusal is not None:
            raise OSError(self.refusal, f"syslog(2): {os.strerror(self.refusal)}")
        return self.log

    def prints(self, prio: int, text: str, stamp_s: float) -> None:
        self.log += f"<{prio}>[{stamp_s:12.6f}] {text}\n".encode()


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    """As in a pod: /dev/kmsg is not there, and there is no journal."""
    open_ways = Ways()

    def no_device(path: str, after_seq: int | None = None) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)

    monkeypatch.setattr(kernel_log, "KmsgReader", no_device)
    monkeypatch.setattr(kernel_log, "SyslogReader", lambda: SyslogReader(open_ways.copy))
    monkeypatch.setattr(kernel_log, "has_system_journal", lambda: False)
    return open_ways


def opened(sources: Sources, *, console: bool = True) -> KernelLog:
    clock = WallClock()
    log = KernelLog(clock, sources, None, clock.now_us())
    log.settle(console=console and bool(log.tracepoints()), now_us=clock.now_us())
    return log


class Text:
    def __init__(self, text: str) -> None:
        self._text = text

    def text(self, _: bytes) -> str:
        return self._text


def traced(log: KernelLog, text: str) -> list[object]:
    fields: Fields = {"msg": Text(text)}  # type: ignore[dict-item]  # all that is asked of a field
    (tracepoint,) = log.tracepoints()
    return list(tracepoint.handle(TraceRecord(1, 0, 0, 1, 1, b""), fields, 7))


def test_syslog_goes_before_the_tracepoint_and_nothing_is_missing(ways: Ways) -> None:
    sources = Sources()
    log = opened(sources)
    assert (log.source, log.tracepoints(), sources.missing) == ("syslog", [], [])
    # WHEN the kernel reports a kill, and a process pretends to be the driver
    place = "nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/t,task_memcg=/t"
    kill = f"oom-kill:constraint=CONSTRAINT_MEMCG,{place},task=x,pid=7,uid=0"
    ways.prints(6, kill, 5)
    ways.prints(11, RESET, 5)
    ways.prints(3, RESET, 5)
    found = [(event.kind, event.source, event.severity) for event in log.read()]
    # THEN the whole line is there, and the process is known for what it is
    assert found == [
        ("memcg_oom", "syslog", "warning"), ("kernel_log", "syslog-user", "info"), ("nic_event", "syslog", "critical"),
    ]  # fmt: skip


def test_stamps_of_another_clock_are_held_between_two_reads(ways: Ways) -> None:
    log = opened(Sources())
    before = WallClock().now_us()
    ways.prints(3, RESET, 0.5)
    (event,) = log.read()
    assert before - 1_000_000 < event.at_us <= WallClock().now_us()


def test_the_tracepoint_makes_no_facts_and_says_what_it_hides(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    ways.refusal = errno.EPERM
    monkeypatch.setattr(kernel_log, "read_text", _files({"osrelease": "5.10.0-32-amd64", "printk": "4\t4\t1\t7"}))
    sources = Sources()
    log = opened(sources)
    (event,) = traced(log, RESET)
    assert log.source == "printk:console"
    assert (event.kind, event.severity) == ("kernel_log", "info")  # type: ignore[attr-defined]
    assert event.fields["looks_like"] == "nic_event"  # type: ignore[attr-defined]
    said = {one.source: one for one in sources.missing}
    assert "CAP_SYSLOG" in said["kernel log"].grant
    for hidden in ("levels", "call traces", "level 4 and above", "a process wrote"):
        assert hidden in said["kernel log"].why


def _files(texts: dict[str, str]) -> Callable[[str], str | None]:
    return lambda path: texts.get(path.rpartition("/")[2])


def test_a_profile_that_hides_syslog_is_not_mended_by_a_capability(ways: Ways) -> None:
    ways.refusal = errno.ENOSYS
    sources = Sources()
    opened(sources, console=False)
    assert {one.source for one in sources.missing} == {"kernel log", "kernel log (/dev/kmsg)"}
    assert all("seccomp" in one.grant for one in sources.missing)


class Flood:
    """A log in which there is always more: what is not read in time is overwritten."""

    def __init__(self) -> None:
        self.reads = 0
        self.pause_lost = 0

    def read(self) -> tuple[list[KmsgRecord], int]:
        self.reads += 1
        lost, self.pause_lost = self.pause_lost, 0
        return [KmsgRecord(6, 0, self.reads * 500 + each, 1, "a driver prints for ever") for each in range(500)], lost

    def fileno(self) -> int:
        return 0


def test_a_flood_is_read_up_to_its_budget_and_what_was_skipped_is_told(
    ways: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [1000.0]
    monkeypatch.setattr("zombiescope.recorder.kernel_log.time.monotonic", lambda: now_s[0])
    log, flood = opened(Sources()), Flood()
    monkeypatch.setattr(log, "_kmsg", flood)
    monkeypatch.setattr(log, "_time_us", lambda _: 0)
    for _ in range(200):  # all in one moment
        log.read()
    # THEN the burst is read, and no more; nothing polls it
    assert kernel_log.RECORDS_BURST <= flood.reads * 500 <= kernel_log.RECORDS_BURST + 500
    assert log.fileno() is None
    before = flood.reads
    flood.pause_lost = 48_000
    for _ in range(10):
        now_s[0] += 1.1
        told = [event for event in log.read() if event.kind == "kernel_log_gap"]
        if told:
            assert "48000 kernel log records" in told[0].text.replace(",", "")
            assert "a flood, of which at most 2,000 a second are read" in told[0].text
    assert (flood.reads - before) * 500 <= 11 * (kernel_log.RECORDS_PER_S + 500)
