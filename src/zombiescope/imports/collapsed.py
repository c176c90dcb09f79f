"""Collapsed stacks, one a line: `outermost;...;innermost COUNT`. A line becomes a row of that weight, without a time.

Dialects:
    stackcollapse-perf      _[k] kernel, _[j] jit, _[i] inlined after a name (with --all); gProfiler: _[p] Python
    gProfiler               a first line `# {json}`, then index of the application, container and comm as first frames
    difffolded              two counts: the first is taken, and the outcome says so
    zombiescope export      %3B, %0A, %0D and %25 stand for what a name cannot hold here
A name may hold spaces; the count is what follows the last one. Where no name is marked as the kernel's, what lies
inside of a known way into the kernel (do_syscall_64, ...) is.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

from zombiescope._native import context_of, plain_name
from zombiescope.base import json as _json
from zombiescope.base import text as _text
from zombiescope.imports.rows import FrameRow, ImportReport, SampleRows, TaskRow
from zombiescope.imports.writer import MAX_ROWS
from zombiescope.store.sample_event import SampleEvent

EVENT = SampleEvent("collapsed", weighted=True)
_LONGEST_LINE = 1 << 20
_MOST = 2**53
"""A thousand such counts can still be added up."""

_COUNT = r"\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?"
_LINE = re.compile(rf"(?P<stack>.*\S)\s+(?P<count>{_COUNT})", re.DOTALL)
_TWO_COUNTS = re.compile(rf"(?P<stack>.*\S)\s+(?P<count>{_COUNT})\s+{_COUNT}", re.DOTALL)
_MARK = re.compile(r"(.+)_\[([a-z]{1,4})\]")
_ESCAPED = re.compile("%(3B|0A|0D|25)")
_MARKS = {"k": "kernel", "w": "kernel", "j": "jit", "i": "inlined", "p": "python"}
_ENTRIES = frozenset((
    "entry_SYSCALL_64_after_hwframe", "entry_SYSCALL_64", "do_syscall_64", "x64_sys_call", "asm_exc_page_fault",
    "asm_common_interrupt", "asm_sysvec_apic_timer_interrupt", "ret_from_fork", "ret_from_fork_asm", "start_secondary",
    "secondary_startup_64", "secondary_startup_64_no_verify", "cpu_startup_entry", "x86_64_start_kernel",
    "system_call_fastpath", "entry_SYSCALL_64_fastpath", "el0t_64_sync", "el0_svc", "el0_sync",
))  # fmt: skip


def is_line(line: str) -> bool:
    """Whether a line looks like a collapsed stack."""
    found = _LINE.fullmatch(line)
    return found is not None and (";" in found["stack"] or " " not in found["stack"])


class CollapsedImport:
    """Reads one file."""

    def __init__(self, outcome: ImportReport) -> None:
        self._outcome = outcome
        self._comm_at: int | None = None
        self._pattern = _LINE
        self._rounded = False
        self._start()

    def _start(self) -> None:
        self._frames: dict[FrameRow, int] = {}
        self._tasks: dict[str, int] = {}
        self._stacks: dict[str, int] = {}
        self._lengths, self._flat = array("q"), array("q")
        self._idle: list[bool] = []
        self._rows: tuple[array[int], array[int], array[int]] = (array("q"), array("q"), array("q"))
        self._idle_samples = 0

    def read(self, pieces: Iterable[bytes]) -> Iterator[SampleRows]:
        """Rows whose times are all 0."""
        first = True
        for line in _lines(pieces, self._outcome):
            if line.startswith("#"):
                self._header(line)
                continue
            if first:
                self._look_for_two_counts(line)
                first = False
            self._take(line)
            if len(self._rows[0]) >= MAX_ROWS:
                yield self._give()
        if len(self._rows[0]):
            yield self._give()
        if self._rounded:
            self._outcome.note("collapsed stacks: counts with a fraction were rounded")

    def _header(self, line: str) -> None:
        said = _said(line)
        if said:
            enabled = (said.get("application_metadata_enabled"), said.get("container_names_enabled"))
            self._comm_at = sum(map(bool, enabled))

    def _look_for_two_counts(self, line: str) -> None:
        if _TWO_COUNTS.fullmatch(line) is not None:
            self._pattern = _TWO_COUNTS
            self._outcome.note("collapsed stacks: the lines have two counts (difffolded); the first of them is used")

    def _take(self, line: str) -> None:
        found = self._pattern.fullmatch(line)
        if found is None:
            self._outcome.skipped["lines that are not a collapsed stack"] += 1
            return
        count = self._count(found["count"])
        if count is None:
            return
        stack = found["stack"]
        number = self._stacks.get(stack)
        if number is None:
            number = self._stacks[stack] = len(self._stacks)
            self._new_stack([_ESCAPED.sub(_unescaped, name) for name in stack.split(";")])
        stacks, tasks, periods = self._rows
        stacks.append(number)
        tasks.append(self._task(stack))
        periods.append(count)
        self._idle_samples += count if self._idle[number] else 0

    def _count(self, text: str) -> int | None:
        if text.isdecimal():
            whole = _text.number(text)
            count = _MOST + 1 if whole is None else whole
        else:
            value = float(text)
            count = round(value) if value < _MOST else _MOST + 1
            self._rounded = self._rounded or count != value
        if 0 < count <= _MOST:
            return count
        self._outcome.skipped["stacks whose count is 0" if count <= 0 else "stacks whose count is beyond 2^53"] += 1
        return None

    def _task(self, stack: str) -> int:
        if self._comm_at is None:
            return -1
        frames = stack.split(";", self._comm_at + 2)
        at = self._comm_at
        if at < len(frames) and frames[at].startswith("appid: "):
            at += 1
        return self._tasks.setdefault(frames[at], len(self._tasks)) if at < len(frames) else -1

    def _new_stack(self, names: list[str]) -> None:
        frames = _kinds(names)
        self._lengths.append(len(frames))
        self._flat.extend(self._frames.setdefault(frame, len(self._frames)) for frame in frames)
        self._idle.append(_is_idle(frames))

    def _give(self) -> SampleRows:
        stacks, tasks, periods = self._rows
        nothing = array("q", bytes(8 * len(stacks)))
        rows = SampleRows(
            time_us=nothing,
            cpu=array("q", [-1]) * len(stacks),
            task=tasks,
            stack=stacks,
            period=periods,
            event=None,
            stack_lengths=self._lengths,
            stack_frames=self._flat,
            frames=list(self._frames),
            tasks=[TaskRow(None, None, comm) for comm in self._tasks],
            events=[EVENT],
            idle_samples=self._idle_samples,
        )
        self._start()
        return rows


def host_in(text: str) -> str | None:
    """The host that gProfiler's header names."""
    metadata = _said(text.partition("\n")[0]).get("metadata")
    name = metadata.get("hostname") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else None


def _said(line: str) -> dict[str, Any]:
    """The JSON after the # of gProfiler's first line."""
    try:
        said = _json.loads(line.lstrip("# ")) if line.startswith("#") else None
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _lines(pieces: Iterable[bytes], outcome: ImportReport) -> Iterator[str]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            if text := line.decode("utf-8", "backslashreplace").strip():
                yield text
        if len(rest) > _LONGEST_LINE:
            outcome.skipped["lines longer than 1 MB"] += 1
            rest = b""
    if text := rest.decode("utf-8", "backslashreplace").strip():
        yield text


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))


def _kinds(names: list[str]) -> list[FrameRow]:
    """Frames of a stack; a mark decides, else the way into the kernel that is further out."""
    frames: list[FrameRow] = []
    inside = False
    for name in names:
        marked = _MARK.fullmatch(name)
        if marked is None:
            inside = inside or name in _ENTRIES
            frames.append(FrameRow(plain_name(name), "", "kernel") if inside else FrameRow(name, "", "unknown"))
            continue
        kind = _MARKS.get(marked[2], "user")
        if kind == "inlined":
            kind = frames[-1].kind if frames else "unknown"
        shown = marked[1] if marked[2] in _MARKS else name
        frames.append(FrameRow(plain_name(shown) if kind == "kernel" else shown, "", kind))
    return frames


def _is_idle(frames: list[FrameRow]) -> bool:
    for frame in reversed(frames):
        if frame.kind == "kernel" and (context := context_of(frame.name)):
            return context == 1
    return False
