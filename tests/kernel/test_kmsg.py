"""The real /dev/kmsg. Lines written by tests end in a newline, or no reader would see them until the next
line.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope.kernel.kmsg import KmsgReader, KmsgRecord
from zombiescope.kernel.log_formats import LogEvent, event_of
from zombiescope.kernel.syslog import SyslogReader

pytestmark = pytest.mark.kernel

CRASH = "import ctypes, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); ctypes.string_at(0)"


@pytest.fixture
def reader(needs: Needs) -> Iterator[KmsgReader]:
    needs.kmsg()
    reader = KmsgReader()
    yield reader
    reader.close()


def wait_for(reader: KmsgReader, wanted: Callable[[KmsgRecord], bool], deadline_s: float = 5.0) -> KmsgRecord:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        select.select([reader], [], [], 0.1)
        for record in reader.read()[0]:
            if wanted(record):
                return record
    raise AssertionError(f"no such record within {deadline_s} s")


def write_line(text: str) -> None:
    Path("/dev/kmsg").write_text(f"<3>{text}\n")


def test_a_line_of_a_process_arrives_and_is_not_the_kernels(reader: KmsgReader) -> None:
    # WHEN a process pretends to be the ENA driver
    token = uuid.uuid4().hex[:8]
    write_line(f"ena 0000:20:03.0 eth0: Transmit time out {token}")
    record = wait_for(reader, lambda r: token in r.text)
    # THEN it is known for what it is
    assert record.level == 3
    assert record.from_kernel is False
    event = event_of(record)
    assert event is not None
    assert (event.kind, event.source) == ("kernel_log", "kmsg-user")


def test_a_line_of_the_kernel_arrives_and_is_recognised(needs: Needs, reader: KmsgReader) -> None:
    if Path("/proc/sys/debug/exception-trace").read_text().strip() != "1":
        needs.lack("needs debug.exception-trace=1, the default")
    # WHEN a process crashes, the kernel says so in its own name
    child = subprocess.run([sys.executable, "-c", CRASH])
    assert child.returncode == -signal.SIGSEGV
    record = wait_for(reader, lambda r: "segfault at 0 " in r.text)
    assert record.from_kernel is True
    event = event_of(record)
    assert event is not None
    assert (event.kind, event.known) == ("segfault", "segfault")


def test_starts_at_the_end(reader: KmsgReader) -> None:
    token = uuid.uuid4().hex[:8]
    write_line(f"before {token}")
    wait_for(reader, lambda r: token in r.text)
    late = KmsgReader()
    try:
        assert [record for record in late.read()[0] if token in record.text] == []
    finally:
        late.close()


def test_goes_on_after_the_last_record_of_an_earlier_reader(reader: KmsgReader) -> None:
    # GIVEN a reader that stopped after a line, and a line written while nobody read
    token = uuid.uuid4().hex[:8]
    write_line(f"first {token}")
    last = wait_for(reader, lambda r: token in r.text)
    write_line(f"second {token}")
    # WHEN another goes on from there
    later = KmsgReader(after_seq=last.seq)
    try:
        record = wait_for(later, lambda r: token in r.text)
    finally:
        later.close()
    assert record.text == f"second {token}"


def test_the_offset_of_the_clocks_is_found_live(reader: KmsgReader) -> None:
    reader.read()
    token = uuid.uuid4().hex[:8]
    before_ns = time.monotonic_ns()
    write_line(f"now {token}")
    record = wait_for(reader, lambda r: token in r.text)
    assert reader.clock.known
    assert record.time_us is not None
    # THEN the stamp, moved by the offset, is the time at which we wrote it
    assert abs(reader.clock.to_monotonic_ns(record.time_us) - before_ns) < 100_000_000


def test_syslog_sees_the_same_line_with_its_facility(needs: Needs) -> None:
    needs.kmsg()
    needs.root()
    reader = SyslogReader()
    token = uuid.uuid4().hex[:8]
    write_line(f"for syslog {token}")
    records, lost = reader.read()
    (record,) = [record for record in records if token in record.text]
    assert (record.level, record.from_kernel, lost) == (3, False, 0)
    assert record.time_us is not None


def test_without_the_right_syslog_says_what_to_grant(needs: Needs) -> None:
    needs.root()
    if Path("/proc/sys/kernel/dmesg_restrict").read_text().strip() != "1":
        needs.lack("needs kernel.dmesg_restrict=1")
    # GIVEN an ordinary user (who may not be able to read our source either: all is imported before)
    code = (
        "import ctypes, os; from zombiescope.kernel.syslog import SyslogReader\n"
        "os.setgid(65534); os.setuid(65534); SyslogReader()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "PermissionError" in done.stderr
    assert "CAP_SYSLOG" in done.stderr


@pytest.fixture
def small_group(needs: Needs) -> Iterator[Path]:
    """A memory cgroup of 16 MB, in whichever hierarchy has the controller."""
    needs.root()
    group = _memory_hierarchy() / f"zombiescope-test-oom-{os.getpid()}"
    group.mkdir()
    limit = group / "memory.max"
    (limit if limit.exists() else group / "memory.limit_in_bytes").write_text(str(16 << 20))
    yield group
    group.rmdir()


def _memory_hierarchy() -> Path:
    if Path("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists():
        return Path("/sys/fs/cgroup/memory")
    controllers = Path("/sys/fs/cgroup/cgroup.subtree_control")
    if not controllers.exists() or "memory" not in controllers.read_text().split():
        Needs().lack("needs a memory hierarchy to make a cgroup in")
    return Path("/sys/fs/cgroup")


def test_a_real_oom_kill_is_recognised(reader: KmsgReader, small_group: Path) -> None:
    # WHEN a process takes 64 MB in a cgroup of 16 MB
    hungry = f"open({str(small_group / 'cgroup.procs')!r}, 'w').write('0'); x = bytearray(64 << 20)"
    child = subprocess.Popen([sys.executable, "-c", hungry])
    assert child.wait(10) == -signal.SIGKILL
    # THEN the kernel's lines name it, and the cgroup
    events: list[LogEvent] = []
    end = time.monotonic() + 5
    while not any(event.kind == "oom_kill" for event in events) and time.monotonic() < end:
        events += [event for record in reader.read()[0] if (event := event_of(record)) is not None]
    by_kind = {event.kind: event for event in events}
    assert by_kind["oom_kill"].fields["pid"] == child.pid
    assert by_kind["oom_kill"].fields["scope"] == "memcg"
    assert by_kind["memcg_oom"].fields["oom_memcg"] == f"/{small_group.name}"
    assert by_kind["oom_invoked"].fields["order"] == 0
