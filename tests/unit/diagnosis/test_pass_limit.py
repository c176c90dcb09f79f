"""A pass that is slow goes on, one that hangs is killed; whatever it does, it has an end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from zombiescope.diagnosis import pass_limit, standby
from zombiescope.diagnosis.pass_limit import MOST_TIMES, PassLimit
from zombiescope.kernel.namespaces import INIT_INODES
from zombiescope.recorder import doctor_process

BUSY = "while True: pass"
SLEEPS = "import time; time.sleep(600)"


def a_pod(root: Path, *, limit: str, anon: int) -> str:
    """The files of a process in a container with a memory limit, on cgroup v2."""
    mounted = root / "sys/fs/cgroup"
    (root / "proc/self/ns").mkdir(parents=True)
    (root / "proc/self/ns/cgroup").symlink_to(f"cgroup:[{INIT_INODES['cgroup']}]")
    (root / "proc/self/cgroup").write_text("0::/kubepods/pod1/agent\n")
    (root / "proc/self/mountinfo").write_text("30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    (root / "proc/self/status").write_text("VmSize:\t500000 kB\nVmData:\t102400 kB\n")
    own = mounted / "kubepods/pod1/agent"
    own.mkdir(parents=True)
    for directory in (mounted, own):
        (directory / "cgroup.controllers").write_text("cpu memory\n")
    (own / "cgroup.events").write_text("populated 1\n")
    (own / "memory.max").write_text(f"{limit}\n")
    (own / "memory.stat").write_text(f"anon {anon}\nfile 1048576\n")
    return str(root)


MB = 1 << 20


@pytest.mark.parametrize(
    ("limit", "anon", "room"),
    [(str(512 * MB), 150 * MB, 430 * MB), (str(200 * MB), 180 * MB, 164 * MB), ("max", 0, 1024 * MB)],
    ids=["what is left", "the least", "no limit"],
)
def test_a_pass_may_allocate_what_the_containers_limit_leaves(tmp_path: Path, limit: str, anon: int, room: int) -> None:
    assert pass_limit.data_limit(1024 * MB, a_pod(tmp_path, limit=limit, anon=anon)) == room


@contextmanager
def child(program: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-S", "-c", program]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def test_what_gets_cpu_time_goes_on_and_what_gets_none_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter([1.0, 2.0, 3.0, 3.0, 3.0])
    now = iter([0.0, 50.0, 100.0, 150.0, 200.0, 211.0])
    monkeypatch.setattr(pass_limit, "_cpu_s", lambda _: next(used))
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    limit = PassLimit(1, 60.0)
    assert [limit.is_over() for _ in range(5)] == [False, False, False, False, True]


def test_it_has_an_end_even_if_it_gets_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(pass_limit, "_cpu_s", lambda _: now[0])
    limit = PassLimit(1, 60.0)
    while not limit.is_over() and now[0] < 10_000:
        now[0] += 15.0
    assert now[0] == MOST_TIMES * 60.0


def test_a_busy_process_gets_on_and_a_sleeping_one_does_not() -> None:
    """Of real processes: how much CPU time each has is read from /proc."""
    with child(SLEEPS) as pid:
        limit = PassLimit(pid, 1.0)
        end = time.monotonic() + 60
        while not limit.is_over():
            assert time.monotonic() < end
            time.sleep(limit.check_s)
    with child(BUSY) as pid:
        before = pass_limit._cpu_s(pid)
        limit = PassLimit(pid, 600.0)
        end = time.monotonic() + 60
        while (used := pass_limit._cpu_s(pid)) is None or used < (before or 0.0) + 0.1:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert not limit.is_over()
    assert pass_limit._cpu_s(2**22 + 1) is None


def test_the_recorder_waits_longer_than_a_pass_may_take() -> None:
    assert MOST_TIMES * standby.LOOK_S + standby.LOOK_S / pass_limit.CHECKS < doctor_process.ANSWER_S


def test_a_slow_pass_is_not_killed_after_a_fixed_time() -> None:
    """One that gets little CPU time for nearly twice as long as it may be without progress."""

    def slow() -> dict[str, Any]:
        end = time.monotonic() + 3.5
        while time.monotonic() < end:
            sum(range(200_000))
        return {"new": 7}

    answer = standby._look_apart(standby.Beats(), slow, 2.0)
    assert (answer["exit"], answer["new"]) == (0, 7)


def test_a_pass_without_progress_is_killed() -> None:
    def hangs() -> dict[str, Any]:
        time.sleep(600)
        return {}

    assert standby._look_apart(standby.Beats(), hangs, 0.5)["exit"] == -signal.SIGKILL
