"""What Python was doing in a window, thread by thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from zombiescope.query.programs import Program, programs
from zombiescope.query.python import Doing, Frames, PythonFrame, PythonThread, own, thinning, threads
from zombiescope.query.selection import Filters, pids_of
from zombiescope.questions.views import PythonQuestion
from zombiescope.questions.window import Window
from zombiescope.store import columns
from zombiescope.store.reader import Recording

LANE_US = 900_000_000
APART_US = 1_500_000
"""Looks at the same line that are further apart are two spans."""
MOST_SPANS = 2_000
"""Of one thread in a document."""


@dataclass(frozen=True, slots=True)
class PythonAnswer:
    """`threads`: most looks first."""

    node: str
    window: Window
    threads: list[PythonThread]
    top: int
    every: int
    """Of very many rows only every n-th was read."""

    @property
    def shown(self) -> list[PythonThread]:
        return self.threads[: self.top]

    def document(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "from": self.window.start_us / 1e6,
            "to": self.window.end_us / 1e6,
            "every": self.every,
            "left_out": len(self.threads) - len(self.shown),
            "threads": [_thread(each, self.top) for each in self.shown],
        }


def answer(recording: Recording, question: PythonQuestion) -> PythonAnswer:
    """Raises QuestionError."""
    window = question.window.choose(recording)

    def wanted(pid: int, tid: int, comm: str | None) -> bool:
        named = not question.comm or any(fnmatchcase(comm or "", each) for each in question.comm)
        return named and (not question.pid or pid in question.pid) and (not question.tid or tid in question.tid)

    every = thinning(recording, window.start_us, window.end_us)
    found = threads(recording, window.start_us, window.end_us, wanted, every)
    return PythonAnswer(recording.name, window, found, question.top, every)


def lanes(
    recording: Recording, window: Window, most: int, filters: Filters, top: int
) -> tuple[list[dict[str, Any]], int]:
    """What threads were doing over time, in columns: where own code was, from when to when; in windows of up to
    LANE_US, as there are ten looks a second. `most` spans of each of `top` threads: main threads of processes on a GPU
    first, then other main threads, then by looks. Also how many threads more there are."""
    if window.end_us - window.start_us > LANE_US:
        return [], 0
    found = threads(recording, window.start_us, window.end_us, chosen(recording, window, filters))
    if not found:
        return [], 0
    known = programs(recording, window.start_us, window.end_us)
    on_gpu = _on_gpu(recording, window)
    ordered = sorted(found, key=lambda each: (each.pid != each.tid, each.pid not in on_gpu, -each.looks, each.tid))
    shown = [_lane(each, most, known.get(each.pid), each.pid in on_gpu) for each in ordered[:top]]
    return shown, len(found) - len(shown)


def chosen(recording: Recording, window: Window, filters: Filters) -> Callable[[int, int, str | None], bool]:
    """Whether a thread passes, by pid, tid and name. A unit, container or image is its process's, whose other threads
    may be the only ones that were sampled."""
    pids: frozenset[int] | None = None
    if filters.units or filters.on_containers:
        pids = pids_of(recording, (window.start_us, window.end_us), filters)

    def passes(pid: int, tid: int, comm: str | None) -> bool:
        named = not filters.comms or any(fnmatchcase(comm or "", each) for each in filters.comms)
        numbered = (not filters.pids or pid in filters.pids) and (not filters.tids or tid in filters.tids)
        return named and numbered and (pids is None or pid in pids)

    return passes


def _on_gpu(recording: Recording, window: Window) -> set[int]:
    rows = recording.table("gpu_processes", window.start_us, window.end_us, ("pid",))
    return set(columns.ids(rows.column("pid")).tolist())


def _lane(thread: PythonThread, most: int, about: Program | None, on_gpu: bool) -> dict[str, Any]:
    spans: list[tuple[int, int, str, bool]] = []
    for one in thread.doing:
        mine, _ = own(one.frames)
        what, waits = f"{mine.name} {mine.place}", bool(one.waits)
        if spans and spans[-1][2:] == (what, waits) and one.from_us - spans[-1][1] <= APART_US:
            spans[-1] = (spans[-1][0], one.to_us, what, waits)
        else:
            spans.append((one.from_us, one.to_us, what, waits))
    step = max(1, -(-len(spans) // max(1, most)))
    shown = spans[::step]
    return {
        "pid": thread.pid,
        "tid": thread.tid,
        "comm": thread.comm,
        "program": (about.name if about else None) or _script(thread),
        "rank": about.rank if about else None,
        "main": thread.pid == thread.tid,
        "gpu": on_gpu,
        "from": [start_us / 1e6 for start_us, _, _, _ in shown],
        "to": [end_us / 1e6 for _, end_us, _, _ in shown],
        "what": [what for _, _, what, _ in shown],
        "waits": [waits for _, _, _, waits in shown],
    }


def _script(thread: PythonThread) -> str | None:
    """The file of the outermost frame, where that is a module of somebody's own; a thread begins in the library."""
    first = thread.doing[0].frames[0] if thread.doing else None
    return first.file.rpartition("/")[2] if first and first.name == "<module>" and first.is_own else None


def _thread(each: PythonThread, top: int) -> dict[str, Any]:
    spans = each.doing[:MOST_SPANS]
    ratio = each.waiting_ratio
    return {
        "pid": each.pid,
        "tid": each.tid,
        "comm": each.comm,
        "looks": each.looks,
        "waiting_ratio": None if ratio is None else round(ratio, 4),
        "stacks": [
            {"looks": looks, "ratio": round(looks / each.looks, 4), **_place(frames), "frames": _frames(frames)}
            for frames, looks in each.stacks().most_common(top)
        ],
        "spans": [_span(one) for one in spans],
        "spans_left_off": len(each.doing) - len(spans),
    }


def _span(one: Doing) -> dict[str, Any]:
    said = {"from": one.from_us / 1e6, "to": one.to_us / 1e6, "looks": one.looks, "state": one.state}
    return said | _place(one.frames)


def _place(frames: Frames) -> dict[str, Any]:
    """Where it is, and the innermost line of somebody's own code."""
    return {**_frame(frames[-1]), "own": _frame(own(frames)[0])}


def _frame(frame: PythonFrame) -> dict[str, Any]:
    return {"function": frame.name, "file": frame.file, "line": frame.line}


def _frames(frames: Frames) -> list[dict[str, Any]]:
    return [_frame(frame) for frame in frames]
