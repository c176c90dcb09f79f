"""What threads were doing in Python."""

from __future__ import annotations

from typing import TypedDict

from zombiescope.web.shapes.common import Window


class PythonFrame(TypedDict):
    function: str
    file: str
    line: int


class PythonStack(PythonFrame):
    """The innermost frame; `own` the innermost of the program's own code; `frames` all of them, outermost first."""

    looks: int
    ratio: float
    own: PythonFrame
    frames: list[PythonFrame]


PythonSpan = TypedDict(
    "PythonSpan",
    {
        "from": float,
        "to": float,
        "looks": int,
        "state": str | None,
        "function": str,
        "file": str,
        "line": int,
        "own": PythonFrame,
    },
)
"""Looks in a row that saw the same."""


class PythonThread(TypedDict):
    pid: int
    tid: int
    comm: str | None
    looks: int
    waiting_ratio: float | None
    stacks: list[PythonStack]
    spans: list[PythonSpan]
    spans_left_off: int


PythonLane = TypedDict(
    "PythonLane",
    {
        "pid": int,
        "tid": int,
        "comm": str | None,
        "program": str | None,
        "rank": int | None,
        "main": bool,
        "gpu": bool,
        "from": list[float],
        "to": list[float],
        "what": list[str],
        "waits": list[bool],
    },
)
"""Where own code of a thread was over time, span by span. `program`: the script or module; `main`: the first thread of
its process; `gpu`: the process was on a GPU."""


class PythonThreads(Window):
    every: int
    left_out: int
    threads: list[PythonThread]
