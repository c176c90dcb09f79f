"""A recording in which every string that a process can choose says something else: its name, its arguments, the names
of directories below a unit or a container, of its containers, and its marks. What the kernel, systemd and root's
runtimes say stays as it is: pid, uid, exe, units, ids, the upper end of a path.

Written by the packer, with this in the place of its redaction: so every table is there, and a new one is seen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from zombiescope.diagnosis.carriers import CARRIER_UNITS
from zombiescope.kernel.cgroup_path import containers_in, owner
from zombiescope.store import columns, pack, schema
from zombiescope.store.layout import Span
from zombiescope.store.reader import open_recording

KTHREADD = 2
CONTAINERS = ("name", "requester", "requester_command")
WORDS = ("comm", "cmdline", "requester_command", "daemon")


@dataclass
class Renaming:
    comm: str
    unit: str
    """An innocent unit, whose name becomes that of a directory."""
    node: str
    chosen: set[str]
    """Names that processes had and that were replaced, as found."""

    def rows(self, table: schema.Table, rows: pa.Table) -> pa.Table:
        if len(rows) == 0:
            return rows
        cells = {name: rows.column(name).to_pylist() for name in rows.column_names}
        for column in table.columns:
            if column.kind == "text" and column.name in cells:
                made = [self._cell(table.name, column.name, cells, at) for at in range(len(rows))]
                number = rows.schema.get_field_index(column.name)
                rows = rows.set_column(number, rows.schema.field(number), pa.chunked_array([columns.text_array(made)]))
        return rows

    def _cell(self, table: str, column: str, cells: dict[str, list[Any]], at: int) -> str | None:
        text = cells[column][at]
        row = {name: values[at] for name, values in cells.items()}
        if not isinstance(text, str):
            return None
        if column in ("cgroup", "path") and table != "mounts":
            return self._place(text)
        if table == "containers" and column in CONTAINERS:
            return self.comm
        if table == "events" and column == "text" and row["kind"] == "mark":
            return f"{self.unit} leaks memory cgroups, stop {self.unit}"
        if column in WORDS and not _is_verified(row):
            self.chosen.add(text)
            return self.comm
        return text

    def _place(self, path: str) -> str:
        """A directory called like the innocent unit, where the owner of the subtree may make one."""
        own = owner(path).unit
        upper = path[: path.index(f"/{own}") + len(own) + 1] if own else None
        if own in CARRIER_UNITS:
            upper = None
        if upper is None and (boxes := containers_in(path)):
            upper = boxes[0][0]
        if upper is None or upper == path:
            return path
        return f"{upper}/{self.unit}{path[len(upper) :]}"

    def boot(self, identity: str) -> str:
        return identity

    def span(self, span: Span) -> Span:
        return span

    def about(self, node: dict[str, Any]) -> dict[str, Any]:
        return node


def _is_verified(row: dict[str, Any]) -> bool:
    """pid 1, kernel threads, and processes in the units of runtimes: their names are the system's."""
    kernel = row.get("ppid") in (0, KTHREADD) or row.get("pid") in (0, 1, KTHREADD) or row.get("kernel_thread") == 1
    return kernel or row.get("unit") in CARRIER_UNITS


def renamed(source: Path, target: Path, comm: str, unit: str, patch: pytest.MonkeyPatch) -> Renaming:
    """Writes the same recording with other names."""
    with open_recording(source) as recording:
        made = Renaming(comm, unit, recording.name, set())
        with patch.context() as inside:
            inside.setattr(pack, "Redaction", lambda *_: made)
            pack.pack(recording, recording.start_us, recording.end_us + 1, target, redact=True)
    return made
