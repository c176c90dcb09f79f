"""What many answers share. Times are Unix seconds, ratios 0..1, null = not measured."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from zombiescope.model.answer import Named

Severity = Annotated[Literal["info", "warning", "critical"], Named("Severity")]
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


class ColumnArray(TypedDict):
    """One of the arrays behind the header of columns."""

    name: str
    type: Literal["u8", "u16", "u32", "i32", "f32", "f64"]
    length: int


class Header(Document):
    """What precedes the arrays of an answer in columns."""

    node: str
    arrays: list[ColumnArray]


class WindowHeader(Header, Span):
    """The same of a window."""
