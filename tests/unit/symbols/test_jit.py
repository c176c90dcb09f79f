"""Names that living processes give to the code they make: real compilers, and files that others planted."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope.symbols import jit
from zombiescope.symbols.jit import NOT_OWNED, JitNames
from zombiescope.symbols.process import LiveProcess
from zombiescope.symbols.resolver import Frame, UserSymbols

Start = Callable[..., int]

BUSY_SCRIPT = """
function busyScript(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) | 0; return x }
let total = 0
setInterval(() => { for (let k = 0; k < 50; k++) total += busyScript(100000); console.log('ready') }, 1)
"""
MAKES_CODE = """
import mmap, os, sys, time
code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
start = next(line.split("-")[0] for line in open("/proc/self/maps") if line.split()[1].startswith("rwx"))
print(start, flush=True)
time.sleep(60)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    running: list[subprocess.Popen[str]] = []

    def started(*command: str) -> subprocess.Popen[str]:
        running.append(subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True))
        return running[-1]

    yield started
    for process in running:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        Path(f"/tmp/perf-{process.pid}.map").unlink(missing_ok=True)


@pytest.fixture
def making(start: Callable[..., subprocess.Popen[str]]) -> tuple[int, int]:
    """A process with executable memory that no file holds: its pid and the address."""
    process = start(sys.executable, "-c", MAKES_CODE)
    assert process.stdout is not None
    return process.pid, int(process.stdout.readline(), 16)


def perf_map(pid: int) -> Path:
    return Path(f"/tmp/perf-{pid}.map")


@pytest.mark.parametrize("option", ["--perf-basic-prof", "--perf-prof"])
def test_node_names_its_functions(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path, needs: Needs, option: str
) -> None:
    node = needs.binary("node", "nodejs")
    (tmp_path / "busy.js").write_text(BUSY_SCRIPT)
    process = start(node, option, "--interpreted-frames-native-stack", "busy.js")
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()
    symbols = UserSymbols()
    with open(f"/proc/{process.pid}/maps") as maps:
        spans = [line.split()[0].split("-") for line in maps if re.search(r" ..x. 00000000 00:00 0\s*$", line)]
    addresses = [at for span in spans for at in range(int(span[0], 16), int(span[1], 16), 64)]
    names = set()
    for first in range(0, len(addresses), 1024):
        names |= {frame.name for frame in symbols.resolve_at(process.pid, addresses[first : first + 1024]) if frame}
    assert any(re.match(r"(JS|LazyCompile|Function):.*busyScript", name) for name in names), sorted(names)[:20]
    assert (tmp_path / f"jit-{process.pid}.dump").exists() is (option == "--perf-prof")


def test_code_is_named_once_its_maker_tells(making: tuple[int, int]) -> None:
    pid, address = making
    symbols = UserSymbols()
    assert symbols.resolve_at(pid, [address]) == [Frame("[jit]", "[anon]", "jit")]
    perf_map(pid).write_text(f"{address:x} 40 py::run:/srv/\x1bjob.py\n")
    symbols.jit.forget(pid)  # as if the time until the next look had passed
    named = Frame("py::run:/srv/?job.py", "[jit]", "jit")
    assert symbols.resolve_at(pid, [address, address + 0x50]) == [named, Frame("[jit]", "[anon]", "jit")]
    with perf_map(pid).open("a") as file:
        file.write(f"{address + 0x50:x} 10 py::more\n")
    symbols.jit._known[pid].looked_at_s = 0
    assert symbols.resolve_at(pid, [address + 0x50]) == [Frame("py::more", "[jit]", "jit")]


def test_a_map_of_another_user_is_not_believed(making: tuple[int, int], needs: Needs) -> None:
    needs.root()
    pid, address = making
    perf_map(pid).write_text(f"{address:x} 40 planted\n")
    os.chown(perf_map(pid), 12345, 12345)
    symbols = UserSymbols()
    assert symbols.resolve_at(pid, [address]) == [Frame("[jit]", "[anon]", "jit")]
    assert symbols.jit.failures[NOT_OWNED] == 1


def test_a_map_of_root_that_not_everybody_may_read_is_not_shown_to_others(
    making: tuple[int, int], needs: Needs, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs.root()
    pid, address = making
    monkeypatch.setattr(jit, "identity", lambda _: jit._Identity(12345, pid))
    perf_map(pid).write_text(f"{address:x} 40 secret\n")
    for mode, named in ((0o600, "[jit]"), (0o644, "secret")):
        perf_map(pid).chmod(mode)
        assert [frame and frame.name for frame in UserSymbols().resolve_at(pid, [address])] == [named]


def test_a_file_that_was_mounted_over_it_is_not_read(tmp_path: Path, needs: Needs) -> None:
    """In a mount namespace of his own a user shows us a file that he may not read."""
    needs.root()
    unshare = needs.binary("unshare", "util-linux")
    script = MAKES_CODE.replace(
        "print(start",
        "open('/tmp/treasure', 'w').write(start + ' 40 secret\\n'); name = '/tmp/perf-%d.map' % os.getpid(); "
        "open(name, 'w').close(); os.system('mount --bind /tmp/treasure ' + name); print(start",
    )
    (tmp_path / "tmp").mkdir()
    inner = f'mount --bind {tmp_path}/tmp /tmp && exec {os.path.realpath(sys.executable)} -c "$0"'
    process = subprocess.Popen([unshare, "--mount", "sh", "-c", inner, script], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = int(process.stdout.readline(), 16)
        symbols = UserSymbols()
        assert symbols.resolve_at(process.pid, [address]) == [Frame("[jit]", "[anon]", "jit")]
        assert symbols.jit.failures[jit.MOUNTED] == 1
    finally:
        process.kill()
        process.communicate()


def test_a_link_in_its_place_is_not_followed(making: tuple[int, int], tmp_path: Path) -> None:
    pid, address = making
    (tmp_path / "elsewhere").write_text(f"{address:x} 40 planted\n")
    perf_map(pid).symlink_to(tmp_path / "elsewhere")
    assert UserSymbols().resolve_at(pid, [address]) == [Frame("[jit]", "[anon]", "jit")]


def test_a_process_in_a_container_has_its_own_pid_and_root(tmp_path: Path, needs: Needs) -> None:
    # GIVEN a process in pid and mount namespaces of its own, with its own /tmp
    needs.root()
    unshare = needs.binary("unshare", "util-linux")
    (tmp_path / "tmp").mkdir()
    script = MAKES_CODE.replace(
        "print(start", "open('/tmp/perf-%d.map' % os.getpid(), 'w').write(start + ' 40 inside\\n'); print(start"
    )
    inner = f'mount --bind {tmp_path}/tmp /tmp && exec {os.path.realpath(sys.executable)} -c "$0"'
    command = [unshare, "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inner, script]
    outer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert outer.stdout is not None
        address = int(outer.stdout.readline(), 16)
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
        # THEN its map is found there, under the pid that it has itself
        assert UserSymbols().resolve_at(int(children[0]), [address]) == [Frame("inside", "[jit]", "jit")]
    finally:
        outer.kill()
        outer.wait()
        assert outer.stdout is not None
        outer.stdout.close()


def test_looks_are_bounded(making: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    pid, address = making
    looks = []
    names = JitNames()
    monkeypatch.setattr(JitNames, "_open", lambda *_: looks.append(time.monotonic()))
    process = LiveProcess(pid)
    try:
        for _ in range(100):
            assert names.name(process, address) is None
    finally:
        process.close()
    assert len(looks) == 1


def test_who_a_process_is() -> None:
    fd = os.open("/proc/self", os.O_PATH)
    try:
        who = jit.identity(fd)
    finally:
        os.close(fd)
    assert who == (os.geteuid(), os.getpid())


FORKS = """
import mmap, os, sys, time
code = mmap.mmap(-1, 8192, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
start = next(line.split("-")[0] for line in open("/proc/self/maps") if line.split()[1].startswith("rwx"))
names = open(f"/tmp/perf-{os.getpid()}.map", "w")
names.write(f"{start} 40 before_the_fork\\n")
names.flush()
child = os.fork()
if child == 0:
    if len(sys.argv) > 1:
        os.execv(sys.executable, [sys.executable, "-c", "import time; print('other 0', flush=True); time.sleep(60)"])
    grandchild = os.fork()
    time.sleep(60) if grandchild == 0 else (os.write(1, b"grandchild %d\\n" % grandchild), time.sleep(60))
os.write(1, b"child %d start %d\\n" % (child, int(start, 16)))
sys.stdin.readline()
names.write(f"{int(start, 16) + 4096:x} 40 after_the_fork\\n")
names.flush()
print("written", flush=True)
time.sleep(60)
"""


Forking = Callable[..., tuple[subprocess.Popen[str], dict[str, int]]]


@pytest.fixture
def forking() -> Iterator[Forking]:
    """A process that made code, and its children: what they said of themselves."""
    running: list[tuple[subprocess.Popen[str], dict[str, int]]] = []

    def started(*arguments: str) -> tuple[subprocess.Popen[str], dict[str, int]]:
        process = subprocess.Popen(
            [sys.executable, "-c", FORKS, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        words = f"{process.stdout.readline()} {process.stdout.readline()}".split()
        running.append((process, {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}))
        return running[-1]

    yield started
    for process, said in running:
        for pid in (process.pid, said["child"], said.get("grandchild", said["child"])):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()
        perf_map(process.pid).unlink(missing_ok=True)


def _named(pid: int, address: int, names: JitNames | None = None) -> bytes | None:
    with contextlib.closing(LiveProcess(pid)) as process:
        return (names or JitNames()).name(process, address)


def test_a_forked_worker_has_the_names_of_whom_it_was_forked_from_up_to_the_fork(forking: Forking) -> None:
    parent, said = forking()
    assert parent.stdin is not None
    assert parent.stdout is not None
    names, start = JitNames(), said["start"]
    assert _named(said["child"], start + 4, names) == b"before_the_fork"
    assert _named(said["grandchild"], start + 4, names) == b"before_the_fork"
    parent.stdin.write("\n")
    parent.stdin.flush()
    assert parent.stdout.readline() == "written\n"
    assert _named(parent.pid, start + 4100) == b"after_the_fork"
    time.sleep(jit.LOOK_AGAIN_S)
    assert _named(said["child"], start + 4100, names) is None


def test_a_worker_that_executed_another_program_has_none_of_them(forking: Forking) -> None:
    _, said = forking("exec")
    assert "other" in said
    assert _named(said["child"], said["start"] + 4) is None
