"""What Python was doing in a window, thread by thread."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from zombiescope.query.python import Doing, Frames, PythonFrame, PythonThread, own, thinning, threads
from zombiescope.questions.views import PythonQuestion
from zombiescope.questions.window import Window
from zombiescope.store.reader import Recording

LANE_US = 900_000_000
LANE_THREADS = 4
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


def lane(recording: Recording, window: Window, most: int) -> list[dict[str, Any]]:
    """What the busiest threads were doing over time, in columns: where own code was, from when to when; in windows of
    up to LANE_US, as there are ten looks a second. `most` spans of each."""
    if window.end_us - window.start_us > LANE_US:
        return []
    found = threads(recording, window.start_us, window.end_us)
    return [_lane(each, most) for each in found[:LANE_THREADS]]


def _lane(thread: PythonThread, most: int) -> dict[str, Any]:
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
        "from": [start_us / 1e6 for start_us, _, _, _ in shown],
        "to": [end_us / 1e6 for _, end_us, _, _ in shown],
        "what": [what for _, _, what, _ in shown],
        "waits": [waits for _, _, _, waits in shown],
    }


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
