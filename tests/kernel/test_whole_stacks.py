"""Whole stacks of real programs without frame pointers: copies that the kernel makes, unwound, recorded, read back."""

from __future__ import annotations

import mmap
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording

from zombiescope._native import StackCopies
from zombiescope.kernel.perf_event import open_stack_copies
from zombiescope.query.selection import Filters, Selection
from zombiescope.store import columns, schema
from zombiescope.store.compact import compact
from zombiescope.store.reader import open_recording
from zombiescope.store.stacks import is_named
from zombiescope.symbols.frame_tables import CopiedStacks, FrameTables
from zombiescope.symbols.resolver import live_symbols

pytestmark = pytest.mark.kernel

SOURCE = """
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
volatile double sink;
__attribute__((noinline)) double zs_leaf(int n) { double s = 0; for (int i = 0; i < n; i++) s += s / 2 + i; return s; }
__attribute__((noinline)) double zs_middle(int n) { char room[512]; room[n & 511] = n; return zs_leaf(n) + room[1]; }
__attribute__((noinline)) void zs_aligned(int n) {
    _Alignas(64) double room[64];
    for (int i = 0; i < 64; i++) room[i] = zs_middle(n);
    sink = room[n & 63];
}
int zs_compare(const void *a, const void *b) { sink = zs_leaf(400); return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) void zs_sorts(void) {
    int values[500];
    for (int i = 0; i < 500; i++) values[i] = rand();
    qsort(values, 500, sizeof *values, zs_compare);
    sink = values[0];
}
void zs_handler(int number) { sink = zs_middle(2000000); }
void *zs_thread(void *nothing) { for (;;) { zs_aligned(20000); zs_sorts(); raise(SIGUSR1); } }
int main(int count, char **words) {
    signal(SIGUSR1, zs_handler);
    if (count > 1) { pthread_t one; pthread_create(&one, 0, zs_thread, 0); pthread_join(one, 0); }
    zs_thread(0);
}
"""
FLAGS = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "zs-deep"
    subprocess.run(["gcc", *FLAGS, "-x", "c", "-", "-o", str(path)], input=SOURCE.encode(), check=True)
    return path


@contextmanager
def running(*command: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


Found = Counter[tuple[str, ...]]


def stacks_of(pid: int, tid: int, enough: Callable[[Found], bool]) -> tuple[Found, Counter[str]]:
    """Copies of a thread's stack as names, outermost first, until there are enough; and how the walks ended."""
    ring, taken = open_stack_copies(tid, 99, 16 << 10, 64), StackCopies(1)
    taken.add_ring(0, ring.memory, mmap.PAGESIZE)
    process, names = CopiedStacks(pid, FrameTables()), live_symbols()
    found, ended = Found(), Counter[str]()
    try:
        for _ in range(600):
            time.sleep(0.05)
            taken.drain()
            for _, _, _, _, ip, sp, bp, stack, _ in taken.take():
                chain, why = process.unwind(ip, sp, bp, stack)
                frames = [frame.name for frame in names.resolve(pid, chain) if frame is not None]
                found[tuple(reversed(frames))] += 1
                ended[why] += 1
            if found.total() >= 20 and enough(found):
                break
    finally:
        process.close()
        names.close()
        taken.remove_ring(0)
        ring.close()
    return found, ended


def contains(stack: tuple[str, ...], *wanted: str) -> bool:
    """Whether these functions are on it in this order, one called by the other."""
    size = len(wanted)
    return any(stack[at : at + size] == wanted for at in range(len(stack) - size + 1))


def was_aligned(found: Found) -> bool:
    return any(contains(stack, "zs_thread", "zs_aligned", "zs_middle", "zs_leaf") for stack in found)


def called_back(found: Found) -> bool:
    """Through the C library."""
    return any(contains(stack, "zs_compare", "zs_leaf") and contains(stack, "zs_thread", "zs_sorts") for stack in found)


def interrupted(found: Found) -> bool:
    """By a signal: what it interrupted is below the handler."""
    return any("zs_handler" in stack and "zs_thread" in stack[: stack.index("zs_handler")] for stack in found)


def test_stacks_reach_the_outermost_function(needs: Needs, program: Path) -> None:
    needs.perf_events()
    with running(program) as process:
        found, ended = stacks_of(
            process.pid, process.pid, lambda found: was_aligned(found) and called_back(found) and interrupted(found)
        )
    assert ended["finished"] >= 0.95 * ended.total()
    assert all(stack[0] == "_start" for stack in found if stack[-1] == "zs_leaf")
    assert was_aligned(found)
    assert called_back(found)
    assert interrupted(found)


def test_a_thread_ends_where_it_began(needs: Needs, program: Path) -> None:
    needs.perf_events()
    with running(program, "threads") as process:
        for _ in range(200):
            tids = [int(path.name) for path in Path(f"/proc/{process.pid}/task").iterdir()]
            if len(tids) > 1:
                break
            time.sleep(0.02)
        found, ended = stacks_of(process.pid, max(tids), was_aligned)
    assert ended["finished"] >= 0.95 * ended.total()
    assert not any("main" in stack for stack in found)
    assert was_aligned(found)


def test_a_process_that_ends_while_it_is_read_is_gone(needs: Needs, program: Path) -> None:
    needs.perf_events()
    with running(program) as process:
        stacks = CopiedStacks(process.pid, FrameTables())
        ring = open_stack_copies(process.pid, 99, 8 << 10, 16)
    try:
        chain, why = stacks.unwind(0x1234, 0x7000, 0, b"\0" * 64)
        assert (chain, why) == ([0x1234], "no code")
        with pytest.raises(ProcessLookupError):
            CopiedStacks(process.pid, FrameTables())
    finally:
        stacks.close()
        ring.close()


def test_a_recorder_completes_the_stacks_of_whoever_is_hot(needs: Needs, program: Path, tmp_path: Path) -> None:
    needs.perf_events()
    with running("nice", "-n", "-5", str(program)) as process, recording(tmp_path / "r") as recorder:
        for _ in range(240):
            time.sleep(0.5)
            with open_recording(tmp_path / "r") as opened:
                seen = len(opened.table("whole_stacks", columns=("time",)))
            if seen >= 20:
                break
        recorder.stop()
        pid = process.pid
    with open_recording(tmp_path / "r") as opened:
        copies = opened.table("whole_stacks", columns=("time", "pid"))
        times = columns.ids(copies.column("time"))[columns.ids(copies.column("pid")) == pid].tolist()
        selection = Selection(opened, min(times), max(times), Filters(pids=frozenset({pid}), mode="user"))
        counts = Counter[tuple[str, ...]]()
        for row, count in enumerate(selection.counts().tolist()):
            if count:
                counts[tuple(function.name for function in selection.stacks.of(row))] += count
    leaves = Counter({stack: count for stack, count in counts.items() if stack and stack[-1] == "zs_leaf"})
    whole = sum(count for stack, count in leaves.items() if "zs_thread" in stack)
    assert whole >= 0.5 * leaves.total() > 0


def test_perf_beside_a_recorder_is_not_disturbed(needs: Needs, tmp_path: Path) -> None:
    """The kernel marks MMAP2 records of every listener once one asked for build ids; perf then aborts."""
    needs.perf_events()
    perf = needs.binary("perf", "linux-perf")
    with recording(tmp_path / "r"):
        path = tmp_path / "perf.data"
        command = [perf, "record", "-q", "-e", "cpu-clock", "-F", "199", "-o", str(path), sys.executable, "-c", "pass"]
        done = subprocess.run(command, capture_output=True, timeout=60)
        text = subprocess.run([perf, "script", "-i", str(path), "--show-mmap-events"], capture_output=True, timeout=60)
    assert (done.returncode, text.returncode) == (0, 0), done.stderr
    assert b"PERF_RECORD_MMAP" in text.stdout


ALONE = """
__asm__(
    ".globl NAME_start\\n.type NAME_start,@function\\nNAME_start:\\n.cfi_startproc\\n.cfi_undefined rip\\n"
    "call NAME_outer\\nhlt\\n.cfi_endproc\\n.size NAME_start, .-NAME_start\\n");
volatile long NAME_sink;
__attribute__((noinline)) long NAME_leaf(long n) { long s = 1; for (long i = 1; i < n; i++) s += s / i + i; return s; }
__attribute__((noinline)) long NAME_middle(long n) {
    volatile char room[512];
    room[n & 511] = n;
    return NAME_leaf(n) + room[1];
}
void NAME_outer(void) { for (;;) NAME_sink = NAME_middle(200000); }
"""
"""A program of its own: no library, so nothing that another one runs is in it."""


def alone(name: str, folder: Path) -> Path:
    path = folder / f"zs-{name}"
    flags = [*FLAGS, "-nostdlib", "-static", f"-Wl,-e,{name}_start"]
    source = ALONE.replace("NAME", name).encode()
    subprocess.run(["gcc", *flags, "-x", "c", "-", "-o", str(path)], input=source, check=True)
    return path


def copies_of(place: Path, pid: int, segment: int) -> list[int]:
    """When stacks of a process were copied in a segment."""
    with open_recording(place) as opened:
        parts = opened.parts
        rows = parts[segment].rows(schema.WHOLE_STACKS, None, None, None) if len(parts) > segment else None
        if rows is None:
            return []
        times: list[int] = columns.ids(rows.column("time"))[columns.ids(rows.column("pid")) == pid].tolist()
        return times


def flame(place: Path, pid: int, times: list[int]) -> Counter[tuple[str, ...]]:
    """The stacks of a process's own code, by name, from the first to the last copy of them."""
    counts = Counter[tuple[str, ...]]()
    with open_recording(place) as opened:
        selection = Selection(opened, min(times), max(times) + 1, Filters(pids=frozenset({pid}), mode="user"))
        for row, count in enumerate(selection.counts().tolist()):
            names = tuple(one.name for one in selection.stacks.of(row) if is_named(one.name)) if count else ()
            if names:
                counts[names] += count
    return counts


def test_two_programs_in_two_segments_share_no_function(needs: Needs, tmp_path: Path) -> None:
    """The first runs only in the first segment, the second only after it: numbers of stacks begin again in between."""
    needs.perf_events()
    names, found = ("zsa", "zsb"), []
    place = tmp_path / "r"
    with recording(place, segment_s=8) as recorder:
        for number, name in enumerate(names):
            while len(recorder.segments()) <= number:
                time.sleep(0.1)
            with running("nice", "-n", "-5", str(alone(name, tmp_path))) as process:
                segment, pid = len(recorder.segments()) - 1, process.pid
                for _ in range(120):
                    time.sleep(0.25)
                    segment = len(recorder.segments()) - 1
                    if len(copies_of(place, pid, segment)) >= 5:
                        break
            found.append((pid, copies_of(place, pid, segment)))
            while len(recorder.segments()) <= segment + 1 and number == 0:
                time.sleep(0.1)
        recorder.stop()
    for form in ("log", "parquet"):
        graphs = [flame(place, *each) for each in found]
        functions = [set().union(*graph) for graph in graphs]
        assert functions[0] & functions[1] == set(), form
        for name, graph in zip(names, graphs, strict=True):
            whole = (f"{name}_start", f"{name}_outer", f"{name}_middle", f"{name}_leaf")
            assert graph[whole] >= 0.5 * graph.total() > 0, (form, graph)
        if form == "log":
            assert compact(recorder.node_dir).segments >= 2
