"""Damaged side files: never a traceback, and rows that a recording can hold."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zombiescope.importing import kernel_log, mpstat, proc_cgroups
from zombiescope.importing.collapsed import CollapsedImport, host_in
from zombiescope.importing.formats import detect
from zombiescope.importing.rows import ImportReport
from zombiescope.recording import schema
from zombiescope.recording.log import encode_rows

LOAD = {
    "cpu": "0",
    "usr": 1.5,
    "nice": 0.0,
    "sys": 2,
    "iowait": 0.0,
    "irq": 0.0,
    "soft": 0.0,
    "steal": 0.0,
    "idle": 96.5,
}
REPORT = {"timestamp": "11:52:47", "cpu-load": [LOAD]}
MPSTAT = {"sysstat": {"hosts": [{"nodename": "n", "date": "11/15/26", "statistics": [REPORT] * 3}]}}
ENTRY = {"__REALTIME_TIMESTAMP": "1794743206000000", "MESSAGE": "oom", "_TRANSPORT": "kernel", "PRIORITY": "0"}
TEXTS = (
    json.dumps(MPSTAT, indent=1),
    json.dumps(ENTRY)
    + "\n[12612.193516] a\n<4>[1.000000] b\nNov 15 11:46:46 n kernel: c\n2026-11-15T11:46:46,1+00:00 d\n",
    "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t4\t68680\t1\n",
    '# {"metadata": {"hostname": "n"}, "container_names_enabled": true}\na;b;c_[k] 12\nd 3.5\n',
)


def storable(table: schema.Table, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        assert encode_rows(table, list(rows), 0)


def read_all(text: str) -> None:
    outcome = ImportReport()
    detect(text.encode("utf-8", "surrogatepass"))
    host_in(text)
    storable(schema.CORES, mpstat.read(text, 0, outcome))
    storable(schema.EVENTS, [event.row() for event in kernel_log.read(text, 1 << 50, None, outcome)])
    storable(schema.CENSUS, proc_cgroups.read(text, 0, None, outcome))
    for rows in CollapsedImport(outcome).read([text.encode("utf-8", "surrogatepass")]):
        assert rows.period is not None
        assert min(rows.period) > 0


@pytest.mark.parametrize("seed", range(100))
def test_mutations(seed: int) -> None:
    chance = random.Random(seed)
    text = chance.choice(TEXTS)
    for _ in range(chance.randrange(1, 8)):
        at = chance.randrange(len(text) + 1)
        put = chance.choice(
            ["", "9" * 30, "NaN", "null", "[", "}", '"', "\n", "-1", "\ud800", r"\ud800", "Feb 30", "\x00", "1e999"]
        )
        text = text[:at] + put + text[at + chance.randrange(12) :]
    read_all(text)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200), st.sampled_from(TEXTS))
def test_any_text(more: str, text: str) -> None:
    read_all(more)
    read_all(text + more)
