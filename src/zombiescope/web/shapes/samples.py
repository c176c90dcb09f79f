"""Samples of a window: pictures, tables, and what differs from another window."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from zombiescope.model.answer import Named
from zombiescope.web.shapes.cgroups import Verdict
from zombiescope.web.shapes.common import Document, Header, Span, Window, WindowHeader


class HeatmapHeader(Header):
    """u32 values (columns*rows, column by column), mostly f32 spread (the same by exact time), with `paint` u32
    painted."""

    by: Literal["subsecond", "core"]
    start: float
    column_s: float
    columns: int
    rows: int
    cores: list[int] | None
    total: int
    max: int
    blind: list[tuple[float, float]]


class Pruned(TypedDict):
    branches: int
    samples: int
    below_ratio: float


class Against(Span):
    total: int


class FlamegraphHeader(WindowHeader):
    """Arrays name, module, kind, parent, depth, value, self, and in a difference base, base_self."""

    total: int
    pruned: Pruned
    against: NotRequired[Against]
    base_total: int | None
    scale: float
    invert: bool
    total_recording_samples: int
    names: list[str]
    modules: list[str]
    kinds: list[str]


class FlamechartHeader(WindowHeader):
    """Arrays name, module, kind, depth, start, end, samples."""

    names: list[str]
    modules: list[str]
    kinds: list[str]
    rows_left_off: int


class Frame(TypedDict):
    name: str
    module: str | None
    kind: str


class FunctionRow(Frame):
    self: int
    total: int
    self_ratio: float
    total_ratio: float


class Stack(TypedDict):
    value: int
    ratio: float
    frames: list[Frame]


class Group(TypedDict):
    """Whose samples they are: what all of its tasks have in common."""

    name: str
    comm: str | None
    pid: int | None
    tid: int | None
    unit: str | None
    container: str | None
    pod: str | None
    image: str | None


class WhoRow(Group):
    """`cpus`: how many of them it had in the mean; null where the rate of sampling is not known."""

    samples: int
    ratio: float
    kernel_ratio: float
    cpus: float | None


class Others(TypedDict):
    groups: int
    samples: int


Level = Annotated[
    Literal["owner", "unit", "pod", "container", "image", "program", "process", "thread", "comm"], Named("Level")
]


class Who(Window):
    by: Level
    total: int
    others: Others
    who: list[WhoRow]


class TrackNote(Group):
    samples: int


class TracksHeader(WindowHeader):
    """u32 samples and u32 kernel (tracks*columns, track by track)."""

    by: Level
    columns: int
    column_s: float
    hz: float | None
    others: int
    tracks: list[TrackNote]


class Stacks(Window):
    total: int
    who: list[WhoRow]
    functions: list[FunctionRow]
    stacks: list[Stack]


class Pair(TypedDict):
    """Before, after, and after less before."""

    a: float | None
    b: float | None
    delta: float | None


class Side(Span):
    node: str
    samples: int


class CoreChange(TypedDict):
    cpu: int
    busy: Pair
    longest_saturation_s: Pair


class CoreChanges(TypedDict):
    aggregate: dict[str, Pair]
    cores: list[CoreChange]


class UnitChange(TypedDict):
    name: str
    kind: str
    cores: Pair
    ratio: Pair


class FunctionChange(Frame):
    self_ratio: Pair
    total_ratio: Pair


class Census(TypedDict):
    total: int | None
    live: int | None
    dying: int | None
    growth_per_hour: float | None
    verdict: Verdict | None


class Censuses(TypedDict):
    a: Census
    b: Census


class Difference(Document):
    a: Side
    b: Side
    cores: CoreChanges
    units: list[UnitChange]
    functions: list[FunctionChange]
    cgroups: Censuses
