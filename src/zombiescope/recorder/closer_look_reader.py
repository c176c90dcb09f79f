"""The process that looks closer at one suspect, for a second at most; the recorder tells it whom, and writes what it
says.

    python -m zombiescope.recorder.closer_look_reader

    it reads   {"pid": .., "start_ticks": ..}     look at this process, if it still is that one
    it writes  {"pid": .., "calls": [...], ..}    once for each, one line

A look counts the system calls of its threads for COUNT_S, then records them with their arguments until LOOK_S is over
or its rings are full (kernel/syscall_trace.py). Meanwhile it notes what the process's file descriptors are, in which
state its threads are and where they sleep, and which Python line the busiest of them runs. Nothing is read from the
process's memory but the names and lines of Python functions; paths come from /proc/PID/fd, with secrets masked.

A process that ends, runs another program, or whose number is another's by now is not described: the answer says so.
It has the capabilities that following threads and reading descriptors need, starts no program and opens no socket."""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from zombiescope.base import helper as _helper
from zombiescope.base.confinement import confine
from zombiescope.base.secrets import mask_text
from zombiescope.kernel import process, syscall_trace, system_calls, tracefs
from zombiescope.kernel.process import printable
from zombiescope.kernel.procfile import names_in, number, read_file, read_link
from zombiescope.kernel.syscall_trace import Call, Points, ThreadTrace
from zombiescope.recorder import reader_pipe
from zombiescope.recorder.python_target import Target
from zombiescope.symbols.python import places
from zombiescope.symbols.python.walk import Frame, Tally

CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON = 2, 19, 21, 38
LOOK_S, COUNT_S, STEP_S = 0.9, 0.1, 0.005
"""Opening and closing the events takes the rest of the second."""
MOST_THREADS = 64
MOST_PYTHON_THREADS = 8
MOST_DESCRIPTORS = 256
MOST_RING_BYTES, ALL_RING_BYTES = 1 << 20, 4 << 20
MOST_ROWS = 16
MOST_OBJECTS = 4
"""Of one call: beyond it numbers in them become *, and if that is not enough the names of files."""
MOST_TEXT = 200
FAST_PER_S = 5_000
"""Of a thread that calls more often, recording slows it down so much that its count is taken instead."""
_STATES_EVERY = 10
_DIGITS = re.compile(r"\d+")
_START, _STACK = 19, 25
_LIBRARY = ("/lib/python3", "/lib64/python3", "/site-packages/", "/dist-packages/", "<frozen")


def identity(pid: int) -> tuple[int | None, int | None, str | None] | None:
    """When it started, where its stack begins and its program: the last two change at exec."""
    fields = (read_file(f"/proc/{pid}/stat") or b"").rpartition(b")")[2].split()
    if len(fields) <= _STACK or fields[0] in (b"Z", b"X"):
        return None
    return number(fields[_START]), number(fields[_STACK]), read_link(f"/proc/{pid}/exe")


class Descriptors:
    """What file descriptors were, as /proc/PID/fd was looked through every few milliseconds.

    A program that opens, reads and closes has another file behind the same number in between. So each open is a span:
    whatever was seen in it is its file. A span too short to be looked at is the file of the others that were opened
    with the same words (the address of the name, which is not read), if those agree; else the nearest in time."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[list[int], list[str]]] = {}
        self._spans: dict[int, tuple[list[int], list[_Span]]] = {}

    def saw(self, descriptor: int, at_ns: int, link: str) -> None:
        times, links = self._seen.setdefault(descriptor, ([], []))
        times.append(at_ns)
        links.append(link)

    def learn(self, calls: Iterable[Call]) -> None:
        """Where descriptors were opened and closed, in the order of time."""
        words: dict[tuple[int, ...], set[str]] = {}
        for call in sorted(calls, key=lambda one: one.ended_ns or one.began_ns or 0):
            name = system_calls.name(call.number)
            if name in system_calls.OPENS and call.returned is not None and call.returned >= 0 and call.args:
                begins, spans = self._spans.setdefault(call.returned, ([], []))
                begins.append(call.ended_ns or 0)
                spans.append(_Span(begins[-1], (call.number, *call.args[:2])))
            elif name == "close" and call.args and call.began_ns is not None:
                _, spans = self._spans.get(system_calls.signed(call.args[0]), ([], []))
                if spans and spans[-1].end_ns is None:
                    spans[-1].end_ns = call.began_ns
        for descriptor, (_, spans) in self._spans.items():
            times, links = self._seen.get(descriptor, ([], []))
            for span in spans:
                first = bisect_left(times, span.begin_ns)
                last = len(times) if span.end_ns is None else bisect_left(times, span.end_ns)
                if first < last:
                    span.link = links[first]
                    words.setdefault(span.words, set()).add(span.link)
        for _, spans in self._spans.values():
            for span in spans:
                known = words.get(span.words, set())
                if span.link is None and len(known) == 1:
                    span.link = next(iter(known))

    def link(self, descriptor: int, at_ns: int) -> str | None:
        begins, spans = self._spans.get(descriptor, ([], []))
        place = bisect_right(begins, at_ns) - 1
        if place >= 0 and spans[place].link is not None:
            return spans[place].link
        times, links = self._seen.get(descriptor, ([], []))
        if not times:
            return None
        after = bisect_left(times, at_ns)
        near = [one for one in (after - 1, after) if 0 <= one < len(times)]
        return links[min(near, key=lambda one: abs(times[one] - at_ns))]


@dataclass(slots=True)
class _Span:
    """From an open to its close."""

    begin_ns: int
    words: tuple[int, ...]
    end_ns: int | None = None
    link: str | None = None


@dataclass(slots=True)
class Notes:
    """What is seen beside the calls."""

    descriptors: Descriptors = field(default_factory=lambda: Descriptors())
    states: Counter[str] = field(default_factory=Counter)
    sleeps: Counter[str] = field(default_factory=Counter)
    lines: Counter[Frame] = field(default_factory=Counter)


class Look:
    """At one process."""

    def __init__(self, pid: int, points: Points | None) -> None:
        self.pid, self._points = pid, points
        self._notes = Notes()
        self._target = Target(pid, Tally())
        self._traces: list[ThreadTrace] = []
        self._counted: dict[int, int] = {}
        self.threads = 0
        self.why = ""
        """Why system calls were not followed, or not all of them."""

    def take(self) -> dict[str, Any]:
        began_ns = time.monotonic_ns()
        tids = self._busiest()
        try:
            self._open(tids)
            self._count()
            recorded_ns = self._record(began_ns + int(LOOK_S * 1e9))
            return {**self._described(tids), **self._of_calls(recorded_ns)}
        finally:
            for trace in self._traces:
                trace.close()

    # --- taking it ----------------------------------------------------------------------------------------------------

    def _busiest(self) -> list[int]:
        tids = process.threads(self.pid)
        self.threads = len(tids)
        ran = {tid: (read_file(f"/proc/{self.pid}/task/{tid}/schedstat") or b"").split() for tid in tids[:4096]}
        return sorted(ran, key=lambda tid: -(number(ran[tid][0]) or 0) if ran[tid] else 0)[:MOST_THREADS]

    def _open(self, tids: list[int]) -> None:
        ring_bytes = MOST_RING_BYTES
        while ring_bytes > syscall_trace.LEAST_RING_BYTES and ring_bytes * len(tids) > ALL_RING_BYTES:
            ring_bytes //= 2
        if self._points is None:
            return
        for tid in tids:
            try:
                self._traces.append(ThreadTrace(tid, self._points, ring_bytes))
            except ProcessLookupError:
                continue
            except OSError as error:
                self.why = f"system calls were not followed: {error.strerror}"
                return

    def _count(self) -> None:
        for trace in self._traces:
            trace.count(on=True)
        end_ns = time.monotonic_ns() + int(COUNT_S * 1e9)
        self._note_until(end_ns)
        for trace in self._traces:
            trace.count(on=False)
            self._counted[trace.tid] = trace.counted

    def _record(self, end_ns: int) -> int:
        """How long the calls were recorded, in nanoseconds."""
        began_ns = time.monotonic_ns()
        for trace in self._traces:
            trace.record(on=True)
        self._note_until(end_ns)
        for trace in self._traces:
            trace.record(on=False)
        return time.monotonic_ns() - began_ns

    def _note_until(self, end_ns: int) -> None:
        turn = 0
        while True:
            self._note_descriptors()
            if turn % _STATES_EVERY == 0:
                self._note_states()
            self._note_lines()
            turn += 1
            for trace in self._traces:
                if trace.is_full:
                    trace.record(on=False)
            left_s = (end_ns - time.monotonic_ns()) / 1e9
            if left_s <= 0:
                return
            time.sleep(min(STEP_S, left_s))

    def _note_descriptors(self) -> None:
        place = f"/proc/{self.pid}/fd"
        for name in (names_in(place) or ())[:MOST_DESCRIPTORS]:
            link = read_link(f"{place}/{name}")
            if link is not None and name.isdecimal():
                self._notes.descriptors.saw(int(name), time.monotonic_ns(), link)

    def _note_states(self) -> None:
        for tid in (trace.tid for trace in self._traces) if self._traces else (self.pid,):
            task = self._target.task(tid)
            if task is None:
                continue
            self._notes.states[task.state] += 1
            if task.state in "SD" and (place := _sleeps_in(self.pid, tid)):
                self._notes.sleeps[place] += 1

    def _note_lines(self) -> None:
        now_s = time.monotonic()
        with suppress(OSError):
            if self._target.find(now_s):
                known = self._target.threads(now_s)
                busy = [trace.tid for trace in self._traces if trace.tid in known] or known
                for stack in self._target.look(busy[:MOST_PYTHON_THREADS], now_s).values():
                    if stack.frames:
                        self._notes.lines[own_frame(stack.frames)] += 1

    # --- what it says -------------------------------------------------------------------------------------------------

    def _described(self, tids: list[int]) -> dict[str, Any]:
        stat = process.read_stat(self.pid)
        notes, line = self._notes, next(iter(self._notes.lines.most_common(1)), None)
        return {
            "comm": "" if stat is None else stat.comm,
            "threads": self.threads,
            "followed": len(self._traces),
            "state": next((state for state, _ in notes.states.most_common(1)), None),
            "wchan": next((place for place, _ in notes.sleeps.most_common(1)), None),
            "file": None if line is None else shown_path(line[0].file),
            "line": None if line is None else line[0].line,
            "function": None if line is None else _shown(line[0].name),
            "why": self.why
            or (f"{self.threads - len(tids)} threads were left out" if self.threads > len(tids) else ""),
        }

    def _of_calls(self, recorded_ns: int) -> dict[str, Any]:
        groups: dict[tuple[str, str | None], _Group] = {}
        recorded = [(trace, list(trace.calls())) for trace in self._traces]
        self._notes.descriptors.learn(call for _, made in recorded for call in made)
        for trace, made in recorded:
            rate = self._weight(trace, made, recorded_ns)
            for one in made:
                name = system_calls.name(one.number)
                what = None
                if one.args is not None:
                    path = partial(self._path, at_ns=one.ended_ns if name in system_calls.OPENS else one.began_ns)
                    what = system_calls.object_of(name, one.args, one.returned, path)
                groups.setdefault((name, what), _Group()).add(one, trace.tid, rate, recorded_ns)
        groups = _generalised(groups)
        chosen = _heaviest(groups)
        return {
            "calls_per_s": round(sum(group.per_s for group in groups.values())),
            "calls": [[name, what, *groups[name, what].row()] for name, what in chosen],
        }

    def _weight(self, trace: ThreadTrace, made: list[Call], recorded_ns: int) -> float:
        """How many calls a second one recorded call of this thread stands for."""
        if not made:
            return 0.0
        counted_per_s = self._counted.get(trace.tid, 0) / COUNT_S
        if trace.is_full or counted_per_s >= FAST_PER_S:
            return counted_per_s / len(made)
        return 1e9 / recorded_ns

    def _path(self, descriptor: int, *, at_ns: int | None) -> str | None:
        link = self._notes.descriptors.link(descriptor, at_ns or 0)
        return None if link is None else described_link(link, self.pid)


@dataclass(slots=True)
class _Group:
    """Calls of one kind that worked on one thing."""

    count: int = 0
    per_s: float = 0.0
    took_ns: list[int] = field(default_factory=list)
    total_ns: int = 0
    bytes_per_s: float = 0.0
    failed: Counter[int] = field(default_factory=Counter)
    threads: set[int] = field(default_factory=set)

    def add(self, call: Call, tid: int, per_s: float, recorded_ns: int) -> None:
        self.count += 1
        self.per_s += per_s
        self.threads.add(tid)
        took = call.took_ns
        if took is None:  # it began before the trace, or goes on: at least so long
            took = recorded_ns if call.began_ns is None and call.ended_ns is None else 0
        else:
            self.took_ns.append(took)
        self.total_ns += took
        if call.returned is not None:
            if -4096 < call.returned < 0:
                self.failed[-call.returned] += 1
            elif system_calls.name(call.number) in system_calls.MOVES:
                self.bytes_per_s += call.returned * per_s

    def merge(self, other: _Group) -> None:
        self.count += other.count
        self.per_s += other.per_s
        self.took_ns += other.took_ns
        self.total_ns += other.total_ns
        self.bytes_per_s += other.bytes_per_s
        self.failed += other.failed
        self.threads |= other.threads

    def row(self) -> list[Any]:
        """[count, calls a second in thousandths, median and longest microseconds, all of them, bytes a second, failed,
        the most frequent error, threads]"""
        error = next((os.strerror(one) for one, _ in self.failed.most_common(1)), None)
        middle = statistics.median(self.took_ns) if self.took_ns else None
        return [
            self.count, round(self.per_s * 1000), None if middle is None else round(middle / 1000),
            round(max(self.took_ns) / 1000) if self.took_ns else None, round(self.total_ns / 1000),
            round(self.bytes_per_s), self.failed.total(), error, len(self.threads),
        ]  # fmt: skip


def _generalised(groups: dict[tuple[str, str | None], _Group]) -> dict[tuple[str, str | None], _Group]:
    """A call on many files is one on "/proc/*/stat", or on "/data/*"."""
    for general in (_without_numbers, _directory):
        objects = Counter(name for name, _ in groups)
        merged: dict[tuple[str, str | None], _Group] = {}
        for (name, what), group in groups.items():
            what = general(what) if what is not None and objects[name] > MOST_OBJECTS else what
            merged.setdefault((name, what), _Group()).merge(group)
        groups = merged
    return groups


def _without_numbers(what: str) -> str:
    return _DIGITS.sub("*", what)


def _directory(what: str) -> str:
    place, slash, _ = what.rpartition("/")
    return f"{place}/*" if slash and what.startswith("/") else what


def _heaviest(groups: dict[tuple[str, str | None], _Group]) -> list[tuple[str, str | None]]:
    by_time = sorted(groups, key=lambda key: -groups[key].total_ns)[:MOST_ROWS]
    by_count = sorted(groups, key=lambda key: -groups[key].per_s)[:MOST_ROWS]
    return list(dict.fromkeys([*by_time, *by_count]))[:MOST_ROWS]


def own_frame(frames: tuple[Frame, ...]) -> Frame:
    """The innermost function that is the program's own; a library's where there is no other."""
    own = [one for one in frames if not any(part in one.file for part in _LIBRARY)]
    return own[-1] if own else frames[-1]


def shown_path(path: str) -> str:
    return _shown(places.known_path(path))


def described_link(link: str, pid: int) -> str:
    """What a file descriptor of a process is, for a person: a path, or the kind of what has none."""
    kind, colon, rest = link.partition(":")
    if colon and kind in ("socket", "pipe"):
        return f"a {kind}"
    if colon and kind == "anon_inode":
        return f"an {rest.strip('[]')} descriptor"
    own = f"/proc/{pid}/"
    if link.startswith(own):  # /proc/net is a link to self/net, and /proc/self one to the process
        link = f"/proc/{'' if link.startswith(own + 'net/') else 'self/'}{link.removeprefix(own)}"
    return _shown(link)


def _shown(text: str) -> str:
    return mask_text(printable(os.fsencode(text)))[:MOST_TEXT]


def _sleeps_in(pid: int, tid: int) -> str | None:
    text = (read_file(f"/proc/{pid}/task/{tid}/wchan") or b"").decode("ascii", "replace").strip()
    return None if text in ("", "0") else text[:100]


class CloserLookReader:
    def __init__(self) -> None:
        self._asked: list[tuple[int, int]] = []
        self._points, self._missing = _points()

    def follow(self, said: Any) -> None:
        if isinstance(said, dict) and all(isinstance(said.get(name), int) for name in ("pid", "start_ticks")):
            self._asked.append((said["pid"], said["start_ticks"]))

    def turn(self, now_s: float) -> dict[str, Any] | None:
        if not self._asked:
            return None
        pid, start_ticks = self._asked.pop(0)
        began_us = int(now_s * 1e6)
        found = self._looked(pid, start_ticks)
        return {
            "pid": pid, "start_ticks": start_ticks, "began_us": began_us, "ended_us": time.monotonic_ns() // 1000,
            **found, "cpu_us": int(time.process_time() * 1e6), "rss_bytes": reader_pipe.rss_bytes(),
        }  # fmt: skip

    def _looked(self, pid: int, start_ticks: int) -> dict[str, Any]:
        before = identity(pid)
        if before is None:
            return {"why": "it had ended before the look", "calls": []}
        if before[0] != start_ticks:
            return {"why": "it had ended, and its number is another process's", "calls": []}
        found = Look(pid, self._points).take()
        after = identity(pid)
        if after is None:
            return {**found, "why": "it ended during the look"}
        if after != before:
            return {"why": "it ran another program during the look", "comm": found["comm"], "calls": []}
        if self._points is None:
            found["why"] = self._missing
        return found

    def wait_s(self, _now_s: float) -> float:
        return 0.0 if self._asked else _helper.BEAT_S


def _points() -> tuple[Points | None, str]:
    """The tracepoints, or why there are none."""
    try:
        place = tracefs.find()
        if place is None:
            return None, "system calls were not followed: tracefs is not mounted"
        return syscall_trace.find(place), ""
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return None, f"system calls were not followed: raw_syscalls: {why}"


def main() -> int:
    confine(
        keep=(CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON),
        allow=("perf_event_open", "process_vm_readv"),
    )
    with suppress(BrokenPipeError, KeyboardInterrupt):
        reader_pipe.run(CloserLookReader())
    return 0


if __name__ == "__main__":
    _helper.begin()
    sys.exit(main())
