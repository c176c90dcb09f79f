"""/proc/PID: names that try to deceive, and real processes."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from zombiescope.kernel import process

Node = Callable[[str], str]


def test_a_process_with_a_deceiving_name(node: Node) -> None:
    found = process.read(4242, node("ubuntu-5.4-v1"))

    assert found is not None
    assert found.comm == "a b) ) x"
    assert (found.ppid, found.state, found.start_time_ticks) == (1, "S", 91203)
    assert (found.rt_priority, found.policy) == (50, 1)
    assert process.POLICIES[found.policy or 0] == "fifo"
    assert found.cmdline == "/usr/bin/kubelet --config /etc/k\\xff\\x1b[2J.yaml"
    assert (found.exe, found.exe_is_deleted) == ("/usr/bin/kubelet", True)
    assert found.cgroups[1] == "/x:y"
    assert found.cgroups[0] == "/system.slice/kubelet.service"


def test_a_kernel_thread_has_no_command_line(node: Node) -> None:
    found = process.read(10, node("ubuntu-5.4-v1"))
    assert found is not None
    assert found.is_kernel_thread
    assert (found.exe, found.cmdline) == (None, None)


def test_a_process_that_is_gone_is_none() -> None:
    assert process.read(1 << 22) is None


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"bash", "bash"),
        (b"caf\xc3\xa9", "café"),
        (b"\xff", "\\xff"),
        (b"a\nb\x1b[31m", "a\\nb\\x1b[31m"),
        ("\u202egnp".encode(), "\\u202egnp"),
    ],
)
def test_text_cannot_paint_a_terminal_and_loses_nothing(data: bytes, text: str) -> None:
    assert process.printable(data) == text
    assert process.printable(data).isprintable()


def test_a_stat_line_that_is_cut_off_is_none() -> None:
    assert process.parse_stat(b"12 (x) S 1 2 3") is None
    assert process.parse_stat(b"12 (x) S 1 " + b"0 " * 40) is None
    assert process.parse_stat(b"no number (x) S 1 " + b"0 " * 40 + b"\n") is None


def test_this_process() -> None:
    found = process.read(os.getpid())
    assert found is not None
    assert found.ppid == os.getppid()
    assert found.exe == os.path.realpath(sys.executable)
    assert found.cmdline is not None
    assert found.cmdline.split()[0] == sys.orig_argv[0]
    assert not found.is_kernel_thread
    assert found.policy in process.POLICIES


def test_a_long_command_line_is_bounded() -> None:
    arguments = [sys.executable, "-c", "print(flush=True); input()", "x" * 100_000]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = process.read(child.pid)
        child.communicate(b"\n")
    assert found is not None
    assert found.cmdline is not None
    assert len(found.cmdline) <= process.CMDLINE_BYTES


def test_a_real_process_with_a_deceiving_name() -> None:
    rename = "open('/proc/self/comm','w').write('a) R 1 \\n(b'); print(flush=True); input()"
    arguments = [sys.executable, "-c", rename]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = process.read(child.pid)
        child.communicate(b"\n")
    assert found is not None
    assert found.ppid == os.getpid()
    assert found.comm.startswith("a) R 1 \\n")


def test_a_defunct_process_is_still_a_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    found = process.read(child.pid)
    child.wait()
    assert found is not None
    assert found.state == "Z"
    assert (found.cmdline, found.exe) == (None, None)


def test_a_number_that_was_reused_while_it_was_read_is_none(monkeypatch: pytest.MonkeyPatch, node: Node) -> None:
    # GIVEN a process whose start time is another one at the second look
    root = node("ubuntu-5.4-v1")
    data = Path(root, "proc/4242/stat").read_bytes()
    answers = iter([process.parse_stat(data), process.parse_stat(data.replace(b" 91203 ", b" 99999 "))])
    monkeypatch.setattr(process, "read_stat", lambda *_: next(answers))

    # THEN what was read belongs to nobody
    assert process.read(4242, root) is None


def test_the_process_group_and_the_terminal() -> None:
    known = process.read_stat(os.getpid())
    assert known is not None
    assert known.process_group == os.getpgrp()
    assert isinstance(known.terminal, int)
