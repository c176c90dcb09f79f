"""When reclaiming stops, when it is refused, what an isolation test proves, and where a thread may go."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from zombiescope.fix import affinity, dead_man, freezer, reclaim_cost, reclaim_worker
from zombiescope.fix.actions import make
from zombiescope.fix.actions.reclaim import ReclaimZombies
from zombiescope.fix.freezer import Frozen
from zombiescope.fix.reclaim import (
    IDLE_BYTES,
    LIVING_BYTES,
    PIECE_BYTES,
    Parent,
    in_pieces,
    pieces,
    refusal,
    surviving_parent,
)
from zombiescope.fix.step import ActionFailedError
from zombiescope.fix.zombie_steps import _is_the_systems
from zombiescope.kernel import open_files
from zombiescope.kernel.cgroup import Hierarchy
from zombiescope.kernel.cgroup_dying import Held
from zombiescope.kernel.process import read_stat

MB = 1 << 20


class Node:
    """Some cgroups, of which each piece releases some; a second a piece."""

    def __init__(self, *released: int, exhausted: bool = True, asked: int = 0) -> None:
        self.left, self.pieces, self._released = 1_000, 0, released
        self._exhausted, self._asked = exhausted, asked

    def piece(self) -> tuple[bool, int]:
        self.left -= self._released[self.pieces] if self.pieces < len(self._released) else 0
        self.pieces += 1
        return self._exhausted, self._asked

    def count(self) -> int:
        return self.left

    def clock(self) -> float:
        return float(self.pieces)


def test_it_ends_when_nothing_more_is_released() -> None:
    node = Node(600, 300)
    made = in_pieces(node.piece, node.count, node.clock, 30)
    assert (made.freed, made.ended, node.pieces) == (900, "nothing more is released", 4)


def test_it_ends_when_the_time_is_over() -> None:
    node = Node(*[1] * 100)
    made = in_pieces(node.piece, node.count, node.clock, 10)
    assert (made.freed, made.ended) == (10, "the time was over")


def test_it_does_not_empty_the_living_in_search_of_the_dead() -> None:
    node = Node(exhausted=False, asked=PIECE_BYTES)
    made = in_pieces(node.piece, node.count, node.clock, 10_000)
    assert node.pieces * PIECE_BYTES == IDLE_BYTES
    assert made.ended == "nothing more is released"


def test_without_a_count_nothing_is_reclaimed() -> None:
    node = Node()
    with pytest.raises(OSError, match="cannot be counted"):
        in_pieces(node.piece, lambda: None, node.clock, 10)
    assert node.pieces == 0


def parent(held: Held | None, file: str | None = "/x/memory.force_empty") -> Parent:
    return Parent("/jobs", "/x", file, 1, held)


@pytest.mark.parametrize(
    ("held", "refused"),
    [
        (Held(10 * MB, 0, 0), False),
        (Held(10 * MB, MB // 2, 0), False),
        (Held(10 * MB, 10 * MB, 0), True),
        (Held(0, 4096, 0), True),
        (None, False),
    ],
)
def test_reclaim_is_refused_where_tmpfs_keeps_them(held: Held | None, refused: bool) -> None:
    assert (refusal(parent(held)) is not None) == refused


def test_reclaim_is_refused_where_the_kernel_has_no_file_for_it() -> None:
    assert "no file to reclaim" in (refusal(parent(Held(MB, 0, 0), None)) or "")


@pytest.mark.parametrize(
    ("path", "survives"),
    [
        ("/jobs/job-*", "/jobs"),
        ("/jobs/pod*/container-*", "/jobs"),
        ("/jobs/gone/job-*", "/jobs"),
        ("/other.service", "/"),
        ("/jobs/../../etc/x", None),
    ],
)
def test_the_deepest_directory_that_is_still_there_survives(tmp_path: Path, path: str, survives: str | None) -> None:
    (tmp_path / "jobs").mkdir()
    found = surviving_parent(Hierarchy(4, 1, frozenset({"memory"}), str(tmp_path), True), path)
    assert (None if found is None else found.path) == survives


def test_the_directory_of_a_unit_that_is_stopped_first_does_not_survive(tmp_path: Path) -> None:
    (tmp_path / "system.slice" / "x.service").mkdir(parents=True)
    hierarchy = Hierarchy(4, 1, frozenset({"memory"}), str(tmp_path), True)
    path = "/system.slice/x.service/job-*"
    paths = [surviving_parent(hierarchy, path, ending) for ending in ((), ("x.service",))]
    assert [one.path for one in paths if one is not None] == ["/system.slice/x.service", "/system.slice"]


def test_the_whole_node_is_never_reclaimed_from() -> None:
    root = Parent("/", "/x", "/x/memory.reclaim", 2, Held(MB, 0, 0))
    assert "blind drop_caches" in (refusal(root) or "")


def _with_memory(place: Path, swap_kb: int, stat: str) -> Parent:
    (place / "proc").mkdir()
    (place / "proc" / "meminfo").write_text(f"SwapTotal: {swap_kb} kB\n")
    (place / "memory.stat").write_text(stat)
    (place / "cgroup.procs").write_text("7\n8\n")
    return Parent("/jobs", str(place), f"{place}/memory.force_empty", 1, Held(MB, 0, 5 * MB))


V1_STAT = f"cache {3 * MB}\nshmem {MB}\nrss 0\ntotal_cache {9 * MB}\ntotal_rss {64 * MB}\n"


def test_what_the_living_lose_is_told(tmp_path: Path) -> None:
    price = reclaim_cost.cost(_with_memory(tmp_path, 0, V1_STAT), str(tmp_path))
    assert price.why_named is None
    assert price.lines == [
        "2,097,152 bytes of its page cache are dropped too: it has 2 processes",
        "5,242,880 bytes of page cache of the living are below it; they are read from disk again",
    ]


def test_the_living_lose_a_gigabyte_at_most_unless_a_person_names_the_parent(tmp_path: Path) -> None:
    """A hot dataset in page cache is known, and nobody agreed to lose it."""
    v1 = _with_memory(tmp_path, 0, V1_STAT)
    much = replace(v1, held=Held(MB, 0, 400 << 30))
    assert reclaim_cost.cost(v1, str(tmp_path)).why_named is None
    assert reclaim_cost.cost(much, str(tmp_path)).why_named is not None
    # cgroup2 is asked for so many bytes and no more, whatever the living hold
    v2 = replace(much, version=2, file=f"{tmp_path}/memory.reclaim")
    assert reclaim_cost.cost(v2, str(tmp_path)).why_named is None
    assert pieces(v2) * PIECE_BYTES <= MB + LIVING_BYTES + PIECE_BYTES
    taken: list[int] = []

    def piece() -> tuple[bool, int]:
        taken.append(PIECE_BYTES)
        return False, PIECE_BYTES

    counts = iter(range(10_000, 0, -1))  # each piece releases one, so that nothing else ends it
    in_pieces(piece, lambda: next(counts), lambda: 0.0, 30.0, pieces(v2))
    assert len(taken) == pieces(v2)


def test_where_the_living_may_be_swapped_out_a_person_has_to_name_the_parent(tmp_path: Path) -> None:
    price = reclaim_cost.cost(_with_memory(tmp_path, 1_000, V1_STAT), str(tmp_path))
    assert price.why_named == "living processes below it may be swapped out"
    assert "up to 67,108,864 bytes" in price.lines[-1]


def test_where_nothing_can_be_told_a_person_has_to_name_the_parent(tmp_path: Path) -> None:
    blind = replace(_with_memory(tmp_path, 0, V1_STAT), held=None)
    assert reclaim_cost.cost(blind, str(tmp_path)).why_named == "what it would take from live cgroups is unknown"


@pytest.mark.parametrize(("release", "word"), [("6.18.1", b"67108864 swappiness=0"), ("6.1.0-9-amd64", b"67108864")])
def test_the_command_that_is_shown_writes_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, word: bytes
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
    file = tmp_path / "memory.reclaim"
    file.touch()
    written: list[bytes] = []

    def write(_fd: int, data: bytes) -> int:
        written.append(data)
        raise OSError(errno.EAGAIN, "less was found")

    monkeypatch.setattr("zombiescope.fix.reclaim_worker.os.write", write)
    piece = reclaim_worker.bytes_of(str(file))
    assert piece() == (True, PIECE_BYTES)
    assert written == [word]
    shown = ReclaimZombies("/jobs")
    monkeypatch.setattr(ReclaimZombies, "_parent", lambda _: Parent("/jobs", str(tmp_path), str(file), 2, None))
    command = shown.command()
    assert command is not None
    assert f"echo {shlex.quote(word.decode())} > {file}" in command[-1]
    assert f"seq {LIVING_BYTES // PIECE_BYTES}" in command[-1]


# --- the dead man's switch --------------------------------------------------------------------------------------------


def test_the_switch_thaws_the_last_it_heard_of_when_the_pipe_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    thawed: list[Frozen] = []
    monkeypatch.setattr(dead_man, "thaw", thawed.append)
    reading, writing = os.pipe()
    first, last = Frozen("signals", "/x", ((7, 1),)), Frozen("signals", "/x", ((7, 1), (8, 2)))
    os.write(writing, f"{first.to_json()}\n{last.to_json()}\n".encode())
    os.close(writing)
    armed: list[None] = []
    dead_man.watch(reading, 60, lambda: armed.append(None))
    os.close(reading)
    assert thawed == [last]
    assert len(armed) == 2


def test_the_switch_thaws_though_a_line_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    thawed: list[Frozen] = []
    monkeypatch.setattr(dead_man, "thaw", thawed.append)
    reading, writing = os.pipe()
    frozen = Frozen("freeze", "/x")
    os.write(writing, f"{frozen.to_json()}\nnonsense\n".encode())
    with pytest.raises(ValueError, match="Expecting"):
        dead_man.watch(reading, 60, lambda: None)
    os.close(reading)
    os.close(writing)
    assert thawed == [frozen]


def test_the_switch_thaws_what_its_owner_forgot_and_goes_on_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner hangs in the middle of a freeze, comes back, and freezes again."""
    thawed: list[Frozen] = []
    reading, writing = os.pipe()
    first, second = Frozen("freeze", "/x"), Frozen("freezer", "/y")
    os.write(writing, json.dumps({**json.loads(first.to_json()), "limit_s": 1.0}).encode() + b"\n")
    now = [0.0]

    def thaw(frozen: Frozen) -> None:
        thawed.append(frozen)
        if frozen == first:
            os.write(writing, f"{second.to_json()}\n".encode())
            os.close(writing)

    def clock() -> float:
        now[0] += 0.3
        return now[0]

    monkeypatch.setattr(dead_man, "thaw", thaw)
    dead_man.watch(reading, 600, lambda: None, clock)
    os.close(reading)
    assert thawed == [first, second]


def test_the_switch_leaves_alone_what_its_owner_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    thawed: list[Frozen] = []
    monkeypatch.setattr(dead_man, "thaw", thawed.append)
    reading, writing = os.pipe()
    os.write(writing, Frozen("freeze", "/x").to_json().encode() + b"\n{}\n")
    os.close(writing)
    dead_man.watch(reading, 60, lambda: None)
    os.close(reading)
    assert thawed == []


def test_a_share_of_a_cpu_is_taken_and_put_back(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("max 100000\n")
    frozen = freezer.freeze(Frozen("cpu.max", str(tmp_path), before="max 100000"))
    assert freezer.is_frozen(frozen)
    assert (tmp_path / "cpu.max").read_text() == "1000 1000000"
    freezer.thaw(Frozen.from_json(frozen.to_json()))
    assert (tmp_path / "cpu.max").read_text() == "max 100000"
    assert not freezer.is_frozen(frozen)


def test_a_number_that_was_given_again_is_not_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr("zombiescope.fix.signals.signal.pidfd_send_signal", lambda _, number: sent.append(number))
    stat = read_stat(os.getpid())
    assert stat is not None
    freezer.thaw(Frozen("signals", "/x", ((os.getpid(), 1),)))
    assert sent == []
    freezer.thaw(Frozen("signals", "/x", ((os.getpid(), stat.start_time_ticks),)))
    assert sent == [signal.SIGCONT]


# --- files and threads -----------------------------------------------------------------------------------------------


def test_files_in_a_maps_file() -> None:
    text = (
        b"7f0000000000-7f0000001000 r--s 00000000 00:1b 42    /dev/shm/a b\n"
        b"7f0000001000-7f0000002000 rw-p 00000000 00:00 0 \n"
        b"7f0000002000-7f0000003000 r-xp 00000000 fe:01 7    /bin/x (deleted)\n"
        b"7f0000003000-7f0000004000 r--s 00000000 00:1b 43    /cut"
    )
    assert open_files.mapped(text) == {(os.makedev(0, 0x1B), 42), (os.makedev(0xFE, 1), 7)}


@pytest.mark.parametrize(
    ("path", "systems"),
    [
        ("/dev/shm/plasma", False),
        ("/run/app.pid", True),
        ("/run/containerd/sandboxes/1/shm/x", False),
        ("/proc/77/root/dev/shm/x", False),
        ("/proc/77/root/run/x", True),
        ("/var/lib/kubelet/pods/1/volumes/x", False),
        ("/tmp/x", False),
    ],
)
def test_what_belongs_to_the_running_system(path: str, systems: bool) -> None:
    assert _is_the_systems(path) == systems


def test_threads_leave_a_core_and_get_it_back() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("needs two cores")
    script = "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); print(1, flush=True)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            stat = affinity.threads(process.pid)[0]
            action = make(
                "hog.move", {"pid": process.pid, "start_time_ticks": stat.start_time_ticks, "cores": [allowed[0]]}
            )
            before = action.before()
            assert not action.is_applied()
            action.apply()
            assert action.is_applied()
            assert all(allowed[0] not in one.cpus for one in affinity.threads(process.pid))
            action.undo(before)
            assert all(list(one.cpus) == allowed for one in affinity.threads(process.pid))
            # AND one core that is all it may use is not taken from it
            assert affinity.move_away(process.pid, frozenset(allowed)) == []
            other = make("hog.move", {**action.arguments(), "start_time_ticks": 1})
            with pytest.raises(ActionFailedError, match="has ended"):
                other.apply()
        finally:
            process.kill()


def test_a_scan_that_takes_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_files, "_mappings", lambda *_: time.sleep(0.3))
    assert not open_files.scan({(1, 1): "/x"}, limit_s=0.05).complete


def test_reclaiming_runs_on_the_cores_it_was_given_and_gives_way(tmp_path: Path) -> None:
    """A full pipe in the place of the kernel's file keeps the child in its write for as long as one looks at it."""
    (tmp_path / "cgroup.stat").write_text("nr_descendants 0\nnr_dying_descendants 5\n")
    os.mkfifo(tmp_path / "memory.reclaim")
    pipe = os.open(tmp_path / "memory.reclaim", os.O_RDWR | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(pipe, b"x" * 4096)
    core = max(os.sched_getaffinity(0))
    parent = Parent("/x", str(tmp_path), str(tmp_path / "memory.reclaim"), 2, None)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(reclaim_worker.reclaim, parent, frozenset({core}), 200.0)
        try:  # as nice as can be, on one core: while others are busy there it takes its time
            assert seen_within(150, lambda: done.done() or any(here == ({core}, 19) for here in _reclaimers()))
            assert not done.done(), done.result()
        finally:
            while not done.done():
                with suppress(BlockingIOError):
                    os.read(pipe, 65_536)
    os.close(pipe)
    assert (done.result().before, done.result().freed) == (5, 0)


def _reclaimers() -> list[tuple[set[int], int]]:
    """Of our own children that reclaim: where they may run, and how nice they are."""
    found = []
    for name in (place.name for place in Path("/proc").iterdir() if place.name.isdecimal()):
        with suppress(OSError):
            stat = read_stat(int(name))
            if stat is not None and stat.ppid == os.getpid() and b"reclaim_worker" in _command_line(name):
                found.append((os.sched_getaffinity(int(name)), os.getpriority(os.PRIO_PROCESS, int(name))))
    return found


def _command_line(pid: str) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def seen_within(seconds: float, look: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not (seen := look()) and time.monotonic() < end:
        time.sleep(0.02)
    return seen
