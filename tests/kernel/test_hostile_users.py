"""A real recorder beside a user without privileges who means it harm: memory that does not answer, tens of thousands of
directories, and network namespaces that come and go. It goes on, and says what it missed and who kept it waiting."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import DEADLINE_S, RecorderProcess, recording

from zombiescope.query.python import threads
from zombiescope.recorder.pythons import SOURCE as PYTHON
from zombiescope.store import health
from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(400)]

USER = 65534
"""Nobody: fusermount3 asks for a name."""
PREAMBLE = f"""
import ctypes, os, signal, socket, stat, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
def checked(result, what):
    if result != 0:
        sys.exit(f"{{what}}: {{os.strerror(ctypes.get_errno())}}")
def becomes_a_user():
    libc.prctl(1, signal.SIGKILL)
    os.setgroups([])
    os.setresgid({USER}, {USER}, {USER})
    os.setresuid({USER}, {USER}, {USER})
    libc.prctl(4, 1)  # its own /proc/self is its own again
def makes_namespaces(which):
    checked(libc.unshare(0x10000000 | which), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", "0 {USER} 1"), ("gid_map", "0 {USER} 1")):
        with open(f"/proc/self/{{name}}", "w") as file:
            file.write(text)
"""
FUSE = """
from zombiescope.lab.fuse_server import FuseServer
place = "/mnt"  # of this namespace alone
checked(libc.unshare(0x20000), "unshare")
checked(libc.mount(b"none", b"/", b"none", 0x4000 | 1 << 18, None), "private")
checked(libc.mount(b"none", place.encode(), b"tmpfs", 0, b"mode=755"), "tmpfs")
device = f"{place}/fuse"  # everybody's, as udev makes it
os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(10, 229))
os.chmod(device, 0o666)
checked(libc.mount(device.encode(), b"/dev/fuse", b"none", 0x1000, None), "bind")
os.mkdir(f"{place}/point")
os.chown(f"{place}/point", 65534, 65534)
os.chdir(place)
becomes_a_user()
ours, theirs = socket.socketpair()
asked = ["fusermount3", "-o", "rw,nosuid,nodev", "--", "point"]
subprocess.run(asked, check=True, env={**os.environ, "_FUSE_COMMFD": str(theirs.fileno())}, pass_fds=[theirs.fileno()])
server = FuseServer(1 << 20)
server._fd = socket.recv_fds(ours, 1, 1)[1][0]
if os.fork() == 0:
    libc.prctl(1, signal.SIGKILL)
    server.delay_s = lambda operation: 1e6 if operation == 15 else 0.0
    server.serve()
    os._exit(0)
os.close(server._fd)  # the daemon's alone: when it ends, everybody who waits is let go
file = os.open("point/data", os.O_RDONLY)
page = libc.mmap(None, 65536, 1, 1, file, 0)
def works():
    while True:
        sum(range(1000))
code = works.__code__
names = {id(code.co_name), id(code.co_qualname)}
for at in range(id(code), id(code) + 208, 8):
    word = ctypes.c_size_t.from_address(at)
    if word.value in names:
        word.value = page
os.write(1, b"1")
works()
"""
"""The name of its function is a page of a file whose daemon never answers: whoever reads it waits."""
NAMESPACES = """
becomes_a_user()
makes_namespaces(0)
os.write(1, b"1")
while True:
    pids = []
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            os._exit(1 if libc.unshare(0x40000000) else 0)
        pids.append(pid)
    if any(os.waitpid(pid, 0)[1] for pid in pids):
        sys.exit("unshare")
    os.write(1, b"8")
"""
HONEST = """
import os
def decode(n):
    total = 0
    for i in range(n):
        total += i
    return total
os.write(1, b"1")
while True:
    decode(5000)
"""


@contextmanager
def running(program: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that has said that it is ready."""
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            if not process.stdout.read(1):
                pytest.skip(f"a user may not do that here: {process.stderr.read().decode(errors='replace')[-300:]}")
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def until(so: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 6 * DEADLINE_S
    while not so():
        assert time.monotonic() < end, what
        time.sleep(0.5)


def looks(recorder: RecorderProcess, pid: int) -> int:
    with open_recording(recorder.node_dir.parent) as opened:
        return sum(one.looks for one in threads(opened, opened.start_us, opened.end_us + 1) if one.pid == pid)


def test_memory_that_never_answers_costs_its_owner_his_stacks_and_nobody_else(
    needs: Needs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs.root()
    needs.binary("fusermount3", "fuse3")
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path / "runtime"))
    with ExitStack() as stack:
        honest = stack.enter_context(running(HONEST)).pid
        recorder = stack.enter_context(recording(tmp_path / "rec", segment_s=5.0))
        until(lambda: looks(recorder, honest) >= 8, "the honest one was never looked at")
        evil = stack.enter_context(running(PREAMBLE + FUSE)).pid

        def reader() -> health.Part:
            return next(one for one in health.parts_of(recorder.node_dir) if one.name == "Python stack reader")

        until(lambda: reader().failures > 0 and str(evil) in reader().why, "the reader never waited for that page")
        before = looks(recorder, honest)
        until(lambda: looks(recorder, honest) >= before + 20, "the node stayed without Python stacks")
        until(lambda: reader().state == "ok", "the reader stayed in trouble")
        recorder.stop()
    with open_recording(tmp_path / "rec") as opened:
        gaps = [gap for gap in opened.gaps() if gap.source == PYTHON]
        assert gaps
        assert all(str(evil) in gap.why for gap in gaps), "whoever kept it waiting is named, and nobody else"
        assert all(gap.to_us - gap.from_us >= 1_000_000 for gap in gaps)
        assert not [one for one in threads(opened, opened.start_us, opened.end_us + 1) if one.pid == evil]


def test_network_namespaces_that_a_user_makes_and_leaves_cost_the_recorder_no_record(tmp_path: Path) -> None:
    with running(PREAMBLE + NAMESPACES) as process, recording(tmp_path / "rec") as recorder:
        recorder.wait_for_frames(10)
        assert process.poll() is None
        result = recorder.stop()
    assert result["lost"] == 0
    with open_recording(tmp_path / "rec") as opened:
        assert [gap for gap in opened.gaps() if gap.source == "samples"] == []


# --- sixty thousand directories --------------------------------------------------------------------------------------

MANY = 60_000
MOST_RSS_BYTES = 160 << 20


@pytest.fixture
def many(needs: Needs) -> Iterator[Path]:
    top = needs.memory_cgroup() / f"zombiescope-test-many-{os.getpid()}"
    top.mkdir()
    try:
        for number in range(MANY):
            (top / str(number)).mkdir()
        yield top
    finally:
        for number in range(MANY):
            with suppress(FileNotFoundError):
                (top / str(number)).rmdir()
        top.rmdir()


@pytest.mark.long
def test_sixty_thousand_directories_are_counted_and_nothing_is_lost(many: Path, tmp_path: Path) -> None:
    with recording(tmp_path / "rec") as recorder:
        recorder.wait_for_frames(10)
        (many / "one-more").mkdir()
        recorder.wait_for_frames(3)
        (many / "one-more").rmdir()
        recorder.wait_for_frames(2)
        result = recorder.stop()
    sys.stdout.write(json.dumps({name: value for name, value in result.items() if name != "missing"}))
    assert result["lost"] == 0
    assert result["max_rss_bytes"] < MOST_RSS_BYTES
    with open_recording(tmp_path / "rec") as opened:
        rows = opened.table("census").to_pylist()
        assert max(row["total"] for row in rows) >= MANY
