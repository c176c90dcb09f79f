"""The statistics of an item: which tables, which columns. Only this travels from the reading
processes to the report.

Every row says its node, its day and the batch that it was written with; times are Unix microseconds. VERSION is raised
when what is read from a recording changes: results of another version are not looked at, and are made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

VERSION = 2
Rows = dict[str, list[tuple[Any, ...]]]
"""By table; columns in their order, without node, day and batch."""

_INT, _TEXT, _NUMBER = pa.int64(), pa.string(), pa.float64()

TABLES: dict[str, dict[str, pa.DataType]] = {
    # What was read, and what of it could not be.
    "items": {
        "fingerprint": _TEXT, "files": _INT, "bytes": _INT, "damaged": _INT, "damage": _TEXT, "seconds": _NUMBER,
        "ahead_s": _NUMBER, "kernel": _TEXT, "labels": _TEXT, "cpus": _INT, "boot": _TEXT, "missing": _INT,
        # The name that node.json gives, why incidents.json says nothing of the node's health (NULL: it does), and the
        # labels that were too many.
        "name": _TEXT, "not_judged": _TEXT, "labels_left_out": _INT,
    },
    # A boot of a node: when it began by the node's clocks (NULL: not measured), and when it was recorded.
    "boots": {"boot": _TEXT, "booted_us": _INT, "first_us": _INT, "last_us": _INT},
    # Under which labels and kernel a node ran from when to when.
    "spans": {"from_us": _INT, "to_us": _INT, "boot": _TEXT, "kernel": _TEXT, "labels": _TEXT},
    "hours": {
        "hour_us": _INT, "boot": _TEXT, "seconds": _INT, "saturated_ms": _INT, "longest_ms": _INT, "busy_ms": _INT,
        "system_ms": _INT, "cores": _INT, "memory_cgroups": _INT, "dying": _INT, "restarts": _INT, "critical": _INT,
        "nic": _INT, "lost": _INT,
    },
    "units": {"unit": _TEXT, "cpu_ms": _INT, "kernel_ms": _INT, "busiest_minute_ms": _INT, "first_us": _INT},
    "incidents": {
        "id": _TEXT, "from_us": _INT, "to_us": _INT, "severity": _TEXT, "state": _TEXT, "pattern": _TEXT,
        "culprit": _TEXT, "hog": _TEXT, "confidence": _NUMBER, "summary": _TEXT, "frames": _TEXT, "gpu_lost_s": _NUMBER,
        "job_lost_s": _NUMBER,
    },
    # Stacks in incident windows: frames joined by ";", outermost first, "[k]" before those of the kernel.
    "stacks": {"stack": _TEXT, "samples": _INT, "starved": _INT},
    "events": {"kind": _TEXT, "key": _TEXT, "severity": _TEXT, "text": _TEXT, "count": _INT, "first_us": _INT,
               "last_us": _INT},
    "leaks": {"path": _TEXT, "dying": _INT, "created": _INT, "culprit": _TEXT, "at_us": _INT},
}  # fmt: skip
KEYS = {"node": _TEXT, "day": _TEXT, "batch": _TEXT}


def arrow_schema(table: str) -> pa.Schema:
    return pa.schema([*KEYS.items(), *TABLES[table].items()])


def arrow(table: str, keys: Sequence[tuple[str, str, str]], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows with their node, day and batch as an Arrow table."""
    target = arrow_schema(table)
    if not rows:
        return target.empty_table()
    columns = zip(*((*key, *row) for key, row in zip(keys, rows, strict=True)), strict=True)
    arrays = [_array(column, field.type) for column, field in zip(columns, target, strict=True)]
    return pa.Table.from_arrays(arrays, schema=target)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """What a node wrote need not fit: then that value was not measured, and the others were."""
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, UnicodeError, OverflowError, TypeError):
        return pa.array([_fitting(value, kind) for value in values], kind)


def _fitting(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, str) and kind == _TEXT:
        return encodable(value)
    try:
        pa.scalar(value, kind)
    except (pa.ArrowException, UnicodeError, OverflowError, TypeError):
        return None
    return value


def encodable(text: str) -> str:
    """Half of a pair of surrogates is valid JSON and no Unicode: it could be neither stored nor sent."""
    return text.encode("utf-8", "replace").decode()


def row(table: str, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """One row from values by their names; what is not named was not measured."""
    return tuple(values.get(name) for name in TABLES[table])
