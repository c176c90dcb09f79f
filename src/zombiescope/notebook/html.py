"""Small tables for a notebook. Every text is somebody else's: it is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from zombiescope.base.text import printable

_CELL = "text-align:left;padding:1px 12px 1px 0;vertical-align:top"


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Rows of a table without lines; the first row bold where there is a head."""
    top = f"<tr>{''.join(_cell(each, 'th') for each in head)}</tr>" if head else ""
    body = "".join(f"<tr>{''.join(_cell(each) for each in row)}</tr>" for row in rows)
    return f'<table style="border-collapse:collapse">{top}{body}</table>'


def heading(text: str) -> str:
    return f"<p><b>{safe(text)}</b></p>"


def preformatted(text: str) -> str:
    lines = "\n".join(safe(line) for line in text.splitlines())
    return f'<pre style="line-height:1.25;white-space:pre-wrap">{lines}</pre>'


def safe(text: object) -> str:
    return escape(printable(str(text)))


def _cell(value: object, tag: str = "td") -> str:
    return f'<{tag} style="{_CELL}">{safe(value)}</{tag}>'
