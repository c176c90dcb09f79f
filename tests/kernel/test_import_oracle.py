"""The importer against `perf script`, on recordings that the real perf makes of a storm of short programs."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conftest import Needs
from tests.helpers import perf_script
from tests.helpers.perf_script import ScriptFrame, ScriptSample

from zombiescope._native import plain_name
from zombiescope.imports import clock, perf_data
from zombiescope.imports.perf_data import PerfDataImport
from zombiescope.imports.rows import FrameRow, ImportReport

STORM = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do ls / >/dev/null; head -c 400000 /dev/urandom | md5sum >/dev/null; done"
SOURCE = """
volatile unsigned long sink;
__attribute__((noinline)) void zs_inner(void) { for (int i = 0; i < 200000; i++) sink += i; }
__attribute__((noinline)) void zs_middle(void) { zs_inner(); sink++; }
__attribute__((noinline)) void zs_outer(void) { zs_middle(); sink++; }
int main(void) { for (int i = 0; i < 400; i++) zs_outer(); return 0; }
"""
KERNEL_KINDS = ("kernel", "module", "bpf")

Record = Callable[..., Path]


class Imported(NamedTuple):
    comm: str | None
    pid: int
    tid: int
    cpu: int
    time_us: int
    event: str
    frames: list[FrameRow]
    """Leaf first."""


@pytest.fixture
def perf(needs: Needs) -> str:
    needs.root()
    needs.perf_events()
    return needs.binary("perf", "linux-perf")


@pytest.fixture
def record(perf: str, needs: Needs, tmp_path: Path) -> Record:
    needs.program("gcc")
    program = tmp_path / "zs-deep"
    command = [
        "gcc",
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-x",
        "c",
        "-",
        "-o",
        str(program),
    ]
    subprocess.run(command, input=SOURCE.encode(), check=True)

    def run(*options: str, pipe: bool = False) -> Path:
        path = tmp_path / "perf.data"
        shell = ["--", "sh", "-c", f"{STORM}; {program}"]
        whole = [perf, "record", "-q", "-F", "999", "-o", "-" if pipe else str(path), *options, *shell]
        for _ in range(4):  # perf 6.1 now and then aborts while it looks for build ids of programs that just ended
            with path.open("wb") if pipe else (tmp_path / "said").open("wb") as out:
                done = subprocess.run(whole, stdout=out, stderr=subprocess.DEVNULL, timeout=120)
            if done.returncode != -signal.SIGABRT:
                break
        assert done.returncode == 0
        return path

    return run


def load(path: Path, outcome: ImportReport) -> list[Imported]:
    importer = PerfDataImport(kallsyms=None, symbol_dirs=[], inline=False, outcome=outcome)
    found = []
    with path.open("rb") as file:
        for rows in importer.read(file, path.name, path.stat().st_size, lambda _: None):
            ends = [0]
            for length in rows.stack_lengths:
                ends.append(ends[-1] + length)
            for at in range(len(rows)):
                task, stack = rows.task[at], rows.stack[at]
                numbers = rows.stack_frames[ends[stack] : ends[stack + 1]] if stack >= 0 else []
                who = rows.tasks[task] if task >= 0 else None
                event = rows.events[rows.event[at] if rows.event is not None else 0].name
                frames = [rows.frames[number] for number in reversed(numbers)]
                pid = -1 if who is None or who.pid is None else who.pid
                tid = -1 if who is None or who.tid is None else who.tid
                comm = who.comm if who is not None else None
                found.append(Imported(comm, pid, tid, rows.cpu[at], rows.time_us[at], event, frames))
    return found


def identity(sample: Imported | ScriptSample) -> tuple[int, int, int, int, str]:
    return sample.pid, sample.tid, sample.cpu, sample.time_us, sample.event


@cache
def kernel_addresses() -> dict[str, set[int]]:
    """Names that kallsyms has for the same address are as good as one another."""
    found: dict[str, set[int]] = {}
    for line in Path("/proc/kallsyms").read_text().splitlines():
        address, _, name, *_ = line.split()
        found.setdefault(plain_name(name), set()).add(int(address, 16))
    return found


def same_function(theirs: ScriptFrame, ours: FrameRow, *, is_leaf: bool) -> bool:
    name = plain_name(theirs.name)
    if name == ours.name:
        return True
    # perf takes a return address for a place in the function that follows when the call was the last instruction.
    if theirs.offset == 0 and not is_leaf:
        return True
    addresses = kernel_addresses()
    if name.startswith("."):  # a label inside a function in assembler (.slowpath): perf names it, we the function
        label = theirs.address - theirs.offset
        functions = (at for each, found in addresses.items() if each[0] not in ".$" for at in found if at <= label)
        return max(functions, default=None) in addresses.get(ours.name, set())
    return bool(addresses.get(name, set()) & addresses.get(ours.name, set()))


def check_kernel_stacks(theirs: list[ScriptSample], ours: list[Imported]) -> int:
    """Compares frame by frame; gives how many frames that were."""
    compared = 0
    for one, other in zip(sorted(theirs, key=identity), sorted(ours, key=identity), strict=True):
        if not one.frames:  # perf discards a chain with a word in it that it does not understand
            continue
        found = [frame for frame in other.frames if frame.kind in KERNEL_KINDS]
        expected, rest = one.frames[: len(found)], one.frames[len(found) :]
        assert len(expected) == len(found), (one, other)
        assert not any(frame.is_kernel for frame in rest), (one, other)
        for at, (a, b) in enumerate(zip(expected, found, strict=True)):
            assert a.address >= perf_script.KERNEL_HALF, (a, b, one)
            assert not a.is_kernel or same_function(a, b, is_leaf=at == 0), (a, b, one)
        compared += len(expected)
    return compared


def check_user_stacks(theirs: list[ScriptSample], ours: list[Imported], names: set[str]) -> int:
    """Frames that perf gives one of these names have it here, and the stacks are equally deep."""
    compared = 0
    for one, other in zip(sorted(theirs, key=identity), sorted(ours, key=identity), strict=True):
        if not one.frames:
            continue
        assert len(one.frames) == len(other.frames), (one, other)
        for a, b in zip(one.frames, other.frames, strict=True):
            if a.name in names:
                assert a.name == b.name
                compared += 1
    return compared


@pytest.mark.parametrize(
    ("options", "pipe"),
    [
        (("-a", "-g"), False),
        (("-a", "-g"), True),
        (("-a", "-g", "-z"), False),
        (("-a", "-g", "-z"), True),
        (("-a", "-g", "-e", "cpu-clock", "-e", "page-faults", "-e", "context-switches"), False),
        (("-a", "-g", "-e", "{cpu-clock,page-faults}:S"), False),
        (("-a", "-g", "--buildid-mmap"), False),
        (("-a", "-g", "-d", "--phys-data", "-W", "--code-page-size", "--all-cgroups"), False),
        (("-a",), False),
    ],
    ids=["file", "pipe", "zstd", "zstd-pipe", "events", "group", "buildid-mmap", "many-fields", "no-chains"],
)
def test_equals_what_perf_script_prints(record: Record, perf: str, options: tuple[str, ...], pipe: bool) -> None:
    path = record(*options, pipe=pipe)
    outcome = ImportReport()
    ours, theirs = load(path, outcome), perf_script.read(perf, path)
    assert len(theirs) > 50
    assert Counter(map(identity, ours)) == Counter(map(identity, theirs))
    by_identity = {identity(sample): sample.comm for sample in theirs}
    for sample in ours:
        assert (sample.comm or f":{sample.tid}") == by_identity[identity(sample)]
    assert check_kernel_stacks(theirs, ours) > 20
    assert check_user_stacks(theirs, ours, {"zs_inner", "zs_middle", "zs_outer"}) > (2 if "-g" in options else 0)
    assert not {why for why in outcome.skipped if "lost" not in why}


@cache
def places(dso: str) -> dict[str, set[str]]:
    """Names of a library -> their addresses: many functions have several names."""
    found: dict[str, set[str]] = {}
    for options in ([], ["-D"]):
        text = subprocess.run(["nm", *options, dso], capture_output=True, text=True).stdout
        for address, _, name in (line.split() for line in text.splitlines() if line.count(" ") == 2):
            found.setdefault(name.partition("@")[0], set()).add(address)
    return found


def same_name(theirs: ScriptFrame, ours: FrameRow) -> bool:
    # perf looks a return address up as it is: behind a call that never returns another function begins.
    if theirs.name == ours.name or theirs.offset == 0 or "+0x" in ours.name:
        return True
    known = places(theirs.dso)
    return bool(known.get(theirs.name.partition("@")[0], set()) & known.get(ours.name, set()))


def same_callers(one: ScriptSample, other: Imported) -> bool | None:
    """Whether the callers that perf finds are ours too, in their order; None where perf found none. Its own unwinding
    leaves some out in programs that just began (_nl_load_locale between _nl_find_locale and mmap)."""
    # Of the leaf perf has names that only its debug symbols know (__GI___fstatat64); callers are what was unwound.
    theirs = [frame for frame in one.frames if frame.address < perf_script.KERNEL_HALF][1:]
    ours = iter([frame for frame in other.frames if frame.kind not in KERNEL_KINDS][1:])
    named = [frame for frame in theirs if frame.name != "[unknown]"]
    return all(any(same_name(frame, own) for own in ours) for frame in named) if named else None


def test_dwarf_stacks_have_the_callers_that_perf_finds(record: Record, perf: str) -> None:
    path = record("-a", "--call-graph", "dwarf,8192")
    outcome = ImportReport()
    ours, theirs = load(path, outcome), perf_script.read(perf, path)
    assert Counter(map(identity, ours)) == Counter(map(identity, theirs))
    assert check_kernel_stacks(theirs, ours) > 20
    pairs = zip(sorted(theirs, key=identity), sorted(ours, key=identity), strict=True)
    ran = [(one, other) for one, other in pairs if one.comm in ("zs-deep", "md5sum", "head", "ls", "sh")]
    compared = [same for one, other in ran if (same := same_callers(one, other)) is not None]
    assert len(compared) > 20
    assert sum(compared) >= 0.95 * len(compared)
    assert any("unwound from their copies" in sentence for sentence in outcome.notes)


def test_the_clock_of_perf_record_k_is_that_of_the_file(record: Record) -> None:
    import time

    before_us = time.time_ns() // 1000
    path = record("-a", "-g", "-k", "CLOCK_MONOTONIC")
    after_us = time.time_ns() // 1000
    with path.open("rb") as file:
        found = perf_data.file_clock(file, path.name)
    assert found is not None
    assert found.first_us is not None
    assert found.last_us is not None
    (offset,) = clock.offset_us([found])
    assert clock.sentences([found])[0].startswith("times: from the file")
    assert before_us - 1_000_000 <= found.first_us + offset <= found.last_us + offset <= after_us + 1_000_000


def test_a_series_lies_on_one_axis(perf: str, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    command = [
        perf,
        "record",
        "-q",
        "-F",
        "499",
        "-a",
        "-g",
        "--switch-output=1s",
        "-o",
        str(path),
        "--",
        "sleep",
        "2.6",
    ]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=60)
    clocks = []
    for part in sorted(tmp_path.glob("perf.data.2*")):
        with part.open("rb") as file:
            found = perf_data.file_clock(file, part.name)
        assert found is not None
        clocks.append(found)
    assert len(clocks) >= 2
    offsets = clock.offset_us(clocks)
    assert len(set(offsets)) == 1
    # What the file is named after and when it was written agree to what perf needs for closing it.
    for found, offset in zip(clocks, offsets, strict=True):
        assert found.last_us is not None
        assert found.modified_wall_us is not None
        assert abs(found.last_us + offset - found.modified_wall_us) < 5_000_000
