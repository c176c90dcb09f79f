"""A recording as a later version of zombiescope will write it: with a table that this one does not know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.made import START_US, Node, write_segment
from zombiescope.store import newer, schema

NUMBER = 200
TABLE = schema.Table(
    NUMBER, "later", tuple(schema.Column(name, kind) for name, kind in
                           (("time", "time"), ("what", "text"), ("many", "ints"), ("count", "int"))),
)  # fmt: skip


@contextmanager
def newer_version(described: bool = True) -> Iterator[None]:
    """Inside, the schema knows the table; `described`: and the headers of its segments say how its blocks look."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(schema.BY_NUMBER, NUMBER, TABLE)
        patched.setitem(schema.BY_NAME, TABLE.name, TABLE)
        if not described:
            patched.setattr(newer, "described", dict)
        yield


def write_newer_segment(place: Path, *, described: bool = True, start_us: int = START_US, seq: int = 0) -> Path:
    """Two seconds: in each a row of the new table, and after it one sample and one event."""
    node = Node()
    stack = node.stack([node.frame("main", "user", "/bin/x")])
    for second in range(2):
        at_us = start_us + second * 1_000_000 + 500_000
        _later(node, at_us, second)
        node.sample(at_us, 0, node.task(7, "python3"), stack)
        node.happen(at_us, "mark", "mark", "info", f"second {second}")
    with newer_version(described):
        return write_segment(place, node.tables, start_us=start_us, seq=seq)


def _later(node: Node, at_us: int, count: int) -> None:
    node.tables.setdefault(TABLE.name, []).append((at_us, "new", (1, 2, 3), count))
