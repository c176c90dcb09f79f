"""JSON of strangers: whatever it is, its readers say that they cannot read it, and nothing else happens."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import zombiescope
from zombiescope.base import json as _json
from zombiescope.imports import collapsed, kernel_log, mpstat
from zombiescope.imports.rows import ImportReport
from zombiescope.node.systemd import journal
from zombiescope.query import events

SOURCES = Path(zombiescope.__file__).parent
OUR_OWN = {
    "base/json.py",
    "agent/__main__.py",
    "agent/services.py",
    "web/__main__.py",
    "recorder/config.py",
    "recorder/__main__.py",
    "imports/mpstat.py",
    "documents/columns.py",
}
"""What they read was written by ourselves and handed over by a command; mpstat's is too long to be walked."""

DEEP = ["[" * 100_000, '{"a":' * 100_000, "[" * 900 + "]" * 900, '{"MESSAGE":' + "[" * 100_000]
READERS: dict[str, Callable[[str], object]] = {
    "journal": lambda text: journal.parse(text.encode()),
    "a journal's file": lambda text: kernel_log.parse(text),
    "an event's fields": lambda text: events._fields(text),
    "collapsed stacks": lambda text: collapsed.host_in(f"# {text}"),
    "mpstat": lambda text: mpstat.read(text, 0, ImportReport()),
    "a cut mpstat": lambda text: mpstat.read('{"statistics": [{"a":' + text, 0, ImportReport()),
}


@pytest.mark.parametrize("text", DEEP, ids=["lists", "objects", "just readable", "a message"])
@pytest.mark.parametrize("name", READERS)
def test_text_that_is_nested_deeply_is_no_document(name: str, text: str) -> None:
    READERS[name](text)


def test_fields_that_were_read_can_be_written() -> None:
    """Python reads what is nested 900 deep and then cannot write it with fewer frames left."""
    fields = events._fields('{"a":' * 900 + "1" + "}" * 900)
    assert set(fields) == {"unreadable"}
    assert _json.loads('{"a":' * 64 + "1" + "}" * 64)
    with pytest.raises(ValueError, match="nested"):
        _json.loads('{"a":' * 65 + "1" + "}" * 65)
    assert len(_json.loads("[" + "[]," * 999 + "[]]")) == 1000


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_brackets_in_strings_neither_hide_depth_nor_make_it(encoding: str) -> None:
    hidden = "[" + '["]\\"]\u5b22\u225d",' * 80 + "1" + ',"[\\\\"]' * 80 + "]"
    with pytest.raises(ValueError, match="nested"):
        _json.loads(hidden.encode(encoding))
    with pytest.raises(ValueError, match="nested"):
        _json.loads(hidden)
    flat = json.dumps(["[" * 200 + '"{', {"a}": "]" * 200}] * 80)
    assert _json.loads(flat.encode(encoding)) == json.loads(flat)


@pytest.mark.parametrize("parse", [lambda text: journal.parse(text.encode()), kernel_log.parse], ids=["live", "file"])
def test_a_number_of_ten_thousand_digits_is_none(parse: Callable[[str], object]) -> None:
    entry = {"MESSAGE": "x", "__REALTIME_TIMESTAMP": "1794743206000000", "PRIORITY": "9" * 10_000}
    assert parse(json.dumps(entry)) is not None


def test_nobody_else_reads_json() -> None:
    strange = []
    for path in SOURCES.rglob("*.py"):
        name = str(path.relative_to(SOURCES))
        if name in OUR_OWN or name.startswith(("lab/", "cli/lab/")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in ("loads", "load") and ast.unparse(node.value) == "json":
                strange.append(name)
    assert not strange
