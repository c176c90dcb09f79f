"""Tasks that wait: found by two looks, matched with what they wait for, told once; a helper that hangs is a gap."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.source_bench import SourceBench

from zombiescope.kernel.stat import Stat
from zombiescope.recorder import wait_helper, wait_process
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.sources.disks import Disks
from zombiescope.recorder.tick import Tick
from zombiescope.recorder.wait_helper import TaskScan, WaitHelper
from zombiescope.recorder.wait_process import WaitProcess
from zombiescope.recorder.waits import Hangs, Waits, WaitSuspicion
from zombiescope.store import schema
from zombiescope.store.batch import Batch

SECOND_US = 1_000_000
MOUNTS = (
    "36 27 254:0 / / rw - ext4 /dev/vda rw\n"
    "50 36 0:45 / /data rw - nfs4 fs-01:/data rw\n"
    "51 36 0:52 / /mnt/s3 rw - fuse.s3fs s3fs rw\n"
    "60 36 7:3 / /scratch rw - ext4 /dev/loop3 rw\n"
)


class Tree:
    """A /proc and /sys that a test writes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.put("proc/self/mountinfo", MOUNTS)
        self.link("proc/self/ns/mnt", "mnt:[1]")
        self.link("sys/dev/block/254:0", "../../devices/pci/virtio0/block/vda")
        self.link("sys/dev/block/7:3", "../../devices/virtual/block/loop3")
        self.put("sys/block/loop3/loop/backing_file", "/mnt/s3/image\n")
        self.disks(vda=(1000, 0))

    def put(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def link(self, path: str, target: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)

    def disks(self, **known: tuple[int, int]) -> None:
        """Name -> requests completed, in flight."""
        lines = [
            f" 1 {n} {name} {done} 0 8 1 0 0 0 0 {flies} 1 1\n" for n, (name, (done, flies)) in enumerate(known.items())
        ]
        self.put("proc/diskstats", "".join(lines))

    def fuse(self, connection: int, waiting: int) -> None:
        self.put(f"sys/fs/fuse/connections/{connection}/waiting", f"{waiting}\n")

    def task(self, pid: int, state: str = "D", *, comm: str = "trainer", runs: int = 5, wchan: str = "io_schedule",
             stack: str = "", fd_on: int | None = None, written: int | None = None) -> None:  # fmt: skip
        place = f"proc/{pid}/task/{pid}"
        fields = "1 1 1 0 -1 0 " + "0 " * 12 + "777 0 0"
        self.put(f"{place}/stat", f"{pid} ({comm}) {state} {fields}\n")
        self.put(f"{place}/schedstat", f"100 0 {runs}\n")
        self.put(f"{place}/wchan", wchan)
        self.put(f"{place}/stack", "".join(f"[<0>] {name}+0x1/0x2\n" for name in stack.split()))
        self.put(f"{place}/syscall", "running\n" if fd_on is None else "0 0x3 0x0\n")
        if fd_on is not None:
            self.put(f"proc/{pid}/fdinfo/3", f"pos:\t0\nmnt_id:\t{fd_on}\n")
        if written is not None:
            self.put(f"{place}/io", f"rchar: 1\nwrite_bytes: {written}\n")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "x", "6.18", "1", "x86_64")))
    return Tree(tmp_path)


def looked(tree: Tree, *times: float) -> dict[str, Any]:
    """The answer of the last of several looks at a tree that does not change."""
    helper = WaitHelper(str(tree.root))
    return [helper.look(at, tasks=True) for at in times][-1]


# --- who is stuck ----------------------------------------------------------------------------------------------------


def test_only_a_second_look_tells_who_does_not_move(tree: Tree) -> None:
    helper = WaitHelper(str(tree.root))
    tree.task(31, fd_on=36)
    tree.task(32, fd_on=36)
    tree.task(33, "S")
    first = helper.look(100.0, tasks=True)
    assert (first["tasks"], first["blocked"], first["looked_at"]) == ([], 2, 3)
    # WHEN one of them has run since
    tree.task(32, runs=6, fd_on=36)
    second = helper.look(105.0, tasks=True)
    # THEN the other is stuck, since the first look
    assert [(row["pid"], row["age_s"], row["alike"]) for row in second["tasks"]] == [(31, 5.0, 1)]


def test_a_pid_that_is_used_again_is_another_task(tree: Tree) -> None:
    scan = TaskScan(str(tree.root))
    tree.task(31)
    scan.look(100.0)
    stat = tree.root / "proc/31/task/31/stat"
    stat.write_text(stat.read_text().replace("777", "999"))
    assert scan.look(105.0).stuck == []


def test_looks_that_are_too_close_say_nothing(tree: Tree) -> None:
    scan = TaskScan(str(tree.root))
    tree.task(31)
    scan.look(100.0)
    assert scan.look(101.0).stuck == []
    assert [one.age_s for one in scan.look(106.0).stuck] == [6.0]


def test_a_walk_that_is_too_long_goes_on_at_the_next_look(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_helper, "MOST_TASKS", 3)
    for pid in range(31, 37):
        tree.task(pid)
    scan = TaskScan(str(tree.root))
    first, second = scan.look(100.0), scan.look(105.0)
    assert (first.tasks, first.complete, second.tasks) == (3, False, 3)
    # THEN each half is compared with itself, and nobody is lost in between
    assert len(scan.look(110.0).stuck) + len(scan.look(115.0).stuck) == 6


def test_waits_for_fuse_are_found_although_they_can_be_interrupted(tree: Tree) -> None:
    tree.task(31, "S", wchan="request_wait_answer", stack="request_wait_answer fuse_dentry_revalidate lookup_fast")
    tree.task(32, "S", wchan="do_epoll_wait")
    tree.fuse(52, 1)
    helper = WaitHelper(str(tree.root))
    answers = [helper.look(at, tasks=at > 102) for at in (100.0, 105.0, 110.0)]
    # THEN a connection without an answer at two looks is suspicious, and the tasks are looked at for it
    assert (answers[0]["pending"], answers[0]["silent"], answers[1]["silent"]) == (True, False, True)
    (row,) = answers[2]["tasks"]
    assert (row["pid"], row["state"], row["kind"], row["resource"]) == (31, "S", "fuse", "/mnt/s3")


def test_a_fuse_that_answers_is_left_alone(tree: Tree) -> None:
    tree.fuse(52, 0)
    tree.task(31, "S", wchan="request_wait_answer")
    answer = looked(tree, 100.0, 105.0)
    assert (answer["silent"], answer["tasks"]) == (False, [])


# --- what they wait for ----------------------------------------------------------------------------------------------


def test_the_mount_of_the_descriptor_tells(tree: Tree) -> None:
    tree.task(31, stack="folio_wait_bit_common filemap_get_pages vfs_read", fd_on=51)
    (row,) = looked(tree, 100.0, 105.0)["tasks"]
    assert (row["kind"], row["resource"]) == ("fuse", "/mnt/s3")
    assert row["frames"] == "vfs_read;filemap_get_pages;folio_wait_bit_common"


def test_a_call_with_a_path_is_matched_with_the_only_mount_of_its_kind(tree: Tree) -> None:
    tree.task(31, stack="rpc_wait_bit_killable nfs4_run_open_task path_openat", wchan="rpc_wait_bit_killable")
    (row,) = looked(tree, 100.0, 105.0)["tasks"]
    assert (row["kind"], row["resource"]) == ("nfs", "fs-01:/data")
    # AND with none where there are two
    tree.put("proc/self/mountinfo", MOUNTS + "70 36 0:60 / /more rw - nfs4 fs-02:/more rw\n")
    (row,) = looked(tree, 100.0, 105.0)["tasks"]
    assert (row["kind"], row["resource"]) == ("nfs", None)


@pytest.mark.parametrize(("after", "moves"), [((1000, 4), False), ((1001, 4), True)])
def test_a_disk_that_goes_on_and_one_that_does_not(tree: Tree, after: tuple[int, int], moves: bool) -> None:
    tree.task(31, stack="jbd2_log_wait_commit ext4_sync_file", fd_on=36)
    tree.disks(vda=(1000, 4))
    helper = WaitHelper(str(tree.root))
    helper.look(100.0, tasks=True)
    tree.disks(vda=after)
    (row,) = helper.look(105.0, tasks=True)["tasks"]
    assert (row["kind"], row["resource"], row["moves"]) == ("journal", "vda", moves)


def test_a_loop_device_stands_for_the_mount_of_its_file(tree: Tree) -> None:
    tree.task(31, stack="folio_wait_bit_common ext4_read_folio", fd_on=60)
    tree.disks(vda=(1000, 0), loop3=(10, 2))
    answer = looked(tree, 100.0, 105.0)
    (row,) = answer["tasks"]
    assert (row["kind"], row["resource"]) == ("fuse", "/mnt/s3")
    assert [(one["kind"], one["point"], one["source"]) for one in answer["below"]] == [("loop", "loop3", "/mnt/s3")]


def test_a_thread_of_the_kernel_waits_for_what_the_others_of_its_kind_wait_for(tree: Tree) -> None:
    tree.put("proc/self/mountinfo", MOUNTS + "70 36 0:60 / /more rw - fuse.other other rw\n")
    tree.task(31, stack="folio_wait_bit_common", fd_on=51)
    tree.task(32, comm="kworker/u8:1", stack="request_wait_answer fuse_read_iter loop_process_work")
    rows = looked(tree, 100.0, 105.0)["tasks"]
    assert {(row["pid"], row["resource"], row["alike"]) for row in rows} == {(31, "/mnt/s3", 2), (32, "/mnt/s3", 2)}


def test_where_no_disk_stands_still_whatever_it_waits_for_goes_on(tree: Tree) -> None:
    tree.task(31, stack="folio_wait_bit_common filemap_fault")
    (row,) = looked(tree, 100.0, 105.0)["tasks"]
    assert (row["kind"], row["resource"], row["moves"]) == ("disk", None, True)


def test_who_is_stopped_from_writing_is_found_though_it_wakes(tree: Tree) -> None:
    helper = WaitHelper(str(tree.root))
    for at, runs, written in ((100.0, 5, 1_000_000), (105.0, 30, 1_500_000)):
        tree.task(31, runs=runs, wchan="balance_dirty_pages", fd_on=36, written=written)
        answer = helper.look(at, tasks=True)
    (row,) = answer["tasks"]
    assert (row["kind"], row["resource"], row["moves"], row["bytes_per_s"]) == ("writeback", "vda", True, 100_000)


def test_thousands_that_wait_for_one_thing_leave_room_for_others(tree: Tree) -> None:
    for pid in range(100, 300):
        tree.task(pid, stack="rpc_wait_bit_killable", fd_on=50)
    tree.task(31, stack="folio_wait_bit_common", fd_on=51)
    rows = looked(tree, 100.0, 105.0)["tasks"]
    assert len(rows) <= 64
    assert {(row["kind"], row["alike"]) for row in rows} == {("nfs", 200), ("fuse", 1)}


def test_a_paused_container_waits_for_nobody(tree: Tree) -> None:
    tree.task(31, stack="__refrigerator get_signal", wchan="__refrigerator")
    assert looked(tree, 100.0, 105.0)["tasks"] == []


def test_names_of_others_are_made_harmless(tree: Tree) -> None:
    tree.task(31, comm="a) R\x1b[2J", fd_on=51)
    tree.put("proc/self/mountinfo", "51 36 0:52 / /mnt/\x1b[31mx rw - fuse.s3fs \x07 rw\n")
    (row,) = looked(tree, 100.0, 105.0)["tasks"]
    assert all(value.isprintable() for value in row.values() if isinstance(value, str))


# --- when it is looked -----------------------------------------------------------------------------------------------


def tick(second: int, blocked: int | None = 0, running: int = 1) -> Tick:
    stat = Stat(None, {}, None, None, None, None, running, blocked)
    return Tick(second * 10**9, second * SECOND_US, SECOND_US, stat=stat)


def test_one_second_of_waiting_calls_for_nothing(tmp_path: Path) -> None:
    suspicion = WaitSuspicion(str(tmp_path))
    said = [suspicion.reasons(tick(second, blocked), 0.0) for second, blocked in enumerate((0, 3, 0, 1, 1, 1))]
    assert said == [set(), set(), set(), set(), set(), {"blocked"}]
    assert suspicion.reasons(tick(9, None), 4.0) == {"disk"}


def load_over(tmp_path: Path, active: float, running: int) -> bool:
    """Whether the load average of so many, of whom so many run, calls for a look within half a minute."""
    load, found = float(running), False
    (tmp_path / "proc").mkdir(exist_ok=True)
    suspicion = WaitSuspicion(str(tmp_path))
    for second in range(40):
        if second % 5 == 0:
            load = load * 0.92 + active * 0.08
        (tmp_path / "proc/loadavg").write_text(f"{load:.2f} 0 0 1/2 3\n")
        found = found or "load" in suspicion.reasons(tick(second, 0, running + 1), 0.0)
    return found


@pytest.mark.parametrize(
    ("active", "running", "expected"),
    [(1, 0, True), (0, 0, False), (4, 3, True), (3, 3, False), (192, 192, False), (200, 192, False), (300, 192, True)],
)
def test_the_load_average_tells_of_those_that_nothing_else_counts(
    tmp_path: Path, active: float, running: int, expected: bool
) -> None:
    assert load_over(tmp_path, active, running) is expected


class Bench:
    """The part of the recorder, second by second, with a helper whose answers a test writes."""

    def __init__(self, root: Path) -> None:
        self.batch, self.sources = Batch(), Sources()
        self.events: list[Any] = []
        self.suspected: list[str] = []
        self.waits = Waits(self.batch, self.sources, SourceBench(Disks, root).source, lambda *_: None, str(root))
        self.waits._is_live = True
        self.waits.tell = self.events.append
        self.waits.suspect = lambda _at, what: self.suspected.append(what)
        self.asked: list[tuple[int, bool]] = []
        self.answer: dict[str, Any] | None = {}
        self.waits.process = self  # type: ignore[assignment]

    def ask(self, now_us: int, question: dict[str, Any]) -> bool:
        self.asked.append((now_us // SECOND_US, question["tasks"]))
        return True

    def listen(self, now_us: int) -> dict[str, Any] | None:
        if self.asked and self.asked[-1][0] == now_us // SECOND_US - 1:
            return self.answer
        return None

    def silent_s(self, _: int) -> float | None:
        return None

    def let_go(self) -> None:
        pass

    def looks(self) -> list[int]:
        return [second for second, tasks in self.asked if tasks]

    def run(self, seconds: range, blocked: int = 1) -> None:
        for second in seconds:
            self.waits.tick(tick(second, blocked))


def row(age_s: float, **known: Any) -> dict[str, Any]:
    who = {"pid": 31, "tid": 31, "comm": "trainer", "kernel_thread": 0}
    return {"age_s": age_s, **who, "kind": "nfs", "resource": "fs-01:/data", "alike": 1, "moves": False, **known}


def test_it_looks_at_once_then_after_five_seconds_then_ever_more_rarely(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.answer = {"tasks": [], "stuck": 0, "remote": 0}
    bench.run(range(100, 300))
    first = bench.looks()[0]
    assert [second - first for second in bench.looks()] == [0, 6, 27, 58, 89, 120, 151, 182]
    # AND on a node of thousands of tasks a look is dearer, and rarer
    bench = Bench(tmp_path)
    bench.answer = {"tasks": [], "stuck": 0, "remote": 0, "looked_at": 20_000}
    bench.run(range(100, 300))
    assert [second - first for second in bench.looks()] == [0, 6, 27, 68, 149]


def test_while_somebody_is_stuck_it_looks_every_ten_seconds(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.answer = {"tasks": [row(5.0)], "stuck": 1, "remote": 0}
    bench.run(range(100, 160))
    first = bench.looks()[0]
    assert [second - first for second in bench.looks()] == [0, 6, 12, 18, 29, 40, 51]


def test_nobody_waits_nobody_looks(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.answer = {"remote": 0}
    bench.run(range(100, 400), blocked=0)
    assert bench.looks() == []
    assert len(bench.asked) == 1, "for file servers, once"


def test_the_mounts_are_looked_at_when_something_is_mounted_and_not_more_often_than_every_30_s(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.answer = {"remote": 0}
    bench.waits._mount_watch.changed = lambda: True  # type: ignore[method-assign]
    bench.run(range(100, 200), blocked=0)
    assert [second for second, _ in bench.asked] == [101, 131, 161, 191]


def test_a_hang_is_told_once_and_its_end_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.answer = {"tasks": [row(12.0, alike=40)], "stuck": 1, "remote": 1}
    bench.run(range(100, 130))
    (told,) = bench.events
    assert (told.kind, told.severity) == ("tasks_wait", "warning")
    assert told.text == "40 tasks wait for nfs fs-01:/data since 12 s (trainer)"
    assert bench.suspected
    bench.answer = {"tasks": [], "stuck": 0, "remote": 1}
    bench.run(range(130, 200), blocked=0)
    assert [event.severity for event in bench.events] == ["warning", "info"]
    assert bench.waits.hangs.now == []


def test_a_task_that_goes_on_waiting_keeps_its_beginning(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for second, age in ((100, 5.0), (110, 15.3), (120, 24.6)):
        bench.waits._understand(second * SECOND_US, {"tasks": [row(age)]})
    rows = bench.batch._rows[schema.WAITING.number]
    assert [each[1] for each in rows] == [95 * SECOND_US] * 3


def test_slow_is_not_told() -> None:
    known = Hangs()
    known.look(SECOND_US, [row(60.0, kind="disk", resource="sda", moves=True)])
    assert list(known.events(SECOND_US)) == []


# --- a helper that hangs ---------------------------------------------------------------------------------------------


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[WaitProcess]:
    """One that reads its question and never answers."""
    made = WaitProcess()
    made._arguments = [sys.executable, "-c", "import time; time.sleep(600)"]
    yield made
    made.stop()


def test_a_helper_that_hangs_is_a_gap_and_there_is_never_a_second(tmp_path: Path, silent: WaitProcess) -> None:
    bench = Bench(tmp_path)
    bench.waits.process = silent
    now_s = [0.0]
    silent.clock = lambda: now_s[0]
    # WHEN it is asked, does not answer, and the kernel does not let go of it
    silent._kill = lambda: setattr(silent, "_is_killed", True)  # type: ignore[method-assign]
    bench.run(range(100, 125))
    now_s[0] = 40.0
    silent.watch()
    # THEN that is reported, and it is alone
    assert silent.pulse.state == "hung"
    assert silent.pulse.why.startswith("does not answer for 40 s")
    assert silent.runs == 1
    del silent._kill
    # AND once it is gone, another one takes over
    pid = silent._pid
    assert pid is not None
    os.kill(pid, 9)
    deadline = time.monotonic() + 10
    while silent.running and time.monotonic() < deadline:
        silent.listen(125 * SECOND_US)
    assert not silent.running
    assert silent.ask(300 * SECOND_US, {"tasks": True})
    assert silent.runs == 2


def test_the_real_helper_answers_and_ends_with_its_input() -> None:
    helper = WaitProcess()
    assert helper.ask(SECOND_US, {"tasks": True})
    deadline, answer = time.monotonic() + 30, None
    while answer is None and time.monotonic() < deadline:
        answer = helper.listen(SECOND_US)
    assert answer is not None
    assert answer["looked_at"] > 1
    assert helper.cpu_us > 0
    helper.let_go()
    while helper.running and time.monotonic() < deadline:
        helper.listen(SECOND_US)
    assert not helper.running


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_process, "MOST_ANSWER_BYTES", 1 << 17)
    helper = WaitProcess()
    helper._arguments = [sys.executable, "-c", "import sys\nwhile True: sys.stdout.write('x' * 65536)"]
    helper.ask(SECOND_US, {})
    for _ in range(50):
        assert helper.listen(SECOND_US) is None
    assert len(helper._said) <= (1 << 17) + 65536
    helper.stop()


# --- disks -----------------------------------------------------------------------------------------------------------


def test_disks_that_did_something_or_stand_still_have_rows(tree: Tree) -> None:
    (tree.root / "sys/block/vda").mkdir(parents=True)
    bench = SourceBench(Disks, tree.root)
    for second, (done, flies) in enumerate(((1000, 0), (1005, 2), (1005, 2), (1005, 2), (1006, 0), (1006, 0))):
        tree.disks(vda=(done, flies), vda1=(done, flies))
        bench.source.tick(tick(100 + second))
        if second == 3:
            assert bench.source.stalled == {"vda": 101 * SECOND_US}
    assert bench.source.stalled == {}
    rows = [each[2:5] for each in bench.rows(schema.DISKS)]
    assert rows == [("vda", 2, 5), ("vda", 2, 0), ("vda", 2, 0), ("vda", 0, 1)], "no partition, nothing for nothing"
    bench.source.close()


def test_a_file_that_is_not_there_is_missing(tmp_path: Path) -> None:
    bench = SourceBench(Disks, tmp_path)
    bench.tick(100)
    assert [name for name, _, _ in bench.missing] == ["disks"]
