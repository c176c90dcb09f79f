"""What many answers share. Times are Unix seconds, ratios 0..1, null = not measured."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypeAliasType, TypedDict

Severity = TypeAliasType("Severity", Literal["info", "warning", "critical"])
Span = TypedDict("Span", {"from": float, "to": float})


class Document(TypedDict):
    """`schema` is what `--json` has too: zombiescope.info/1."""

    schema: str


class Window(Document, Span):
    """What was recorded on a node from one moment to another."""

    node: str


class Gap(Span):
    """A source saw nothing in this span."""

    source: str
    why: str


class Missing(TypedDict):
    """A source that could not be read, and the command that grants it."""

    source: str
    why: str
    grant: str | None


class TimelineEvent(TypedDict):
    at: float
    kind: str
    source: str
    severity: Severity
    text: str
    fields: dict[str, Any]
    means: NotRequired[str]


class Modes(TypedDict):
    """What part of a time was spent how."""

    user: float | None
    nice: float | None
    system: float | None
    irq: float | None
    softirq: float | None
    steal: float | None
    iowait: float | None
    idle: float | None


class ModesBusy(Modes):
    busy: float | None


class ColumnArray(TypedDict):
    """One of the arrays behind the header of columns."""

    name: str
    type: Literal["u8", "u16", "u32", "i32", "f32", "f64"]
    length: int


class Header(Document):
    """What stands before the arrays of an answer in columns."""

    node: str
    arrays: list[ColumnArray]


class WindowHeader(Header, Span):
    """The same of a window."""
