"""The recording as Python has it: the reader's tables, and the same answers as the commands give.

recording = zombiescope.open("/var/lib/zombiescope")
recording                                    # who, from when to when, how much
recording.tables                             # what is in it
recording.tables.cores                       # an Arrow table; recording.pandas("cores") a DataFrame
recording.diagnose(last="10m")
recording.flamegraph(at="12:03:22", cpu=39)
recording.heatmap(last="5m", by="core")
"""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from zombiescope.notebook import html, keywords
from zombiescope.notebook.keywords import Length, Moment
from zombiescope.notebook.tables import Tables
from zombiescope.questions import sides
from zombiescope.questions.views import DiagnoseQuestion, FlamegraphQuestion, HeatmapQuestion
from zombiescope.questions.window import held
from zombiescope.store import locate, reader, schema

if TYPE_CHECKING:
    from zombiescope.notebook.answers import Diagnosis, Flamegraph, Heatmap


class Recording(reader.Recording):
    """One node's recording. Made by zombiescope.open()."""

    @property
    def tables(self) -> Tables:
        return Tables(self)

    def diagnose(
        self,
        *,
        last: Length | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        at: Moment | None = None,
        incident: str | None = None,
    ) -> Diagnosis:
        """What happened, who did it, how we know. Raises UserError."""
        from zombiescope.base.errors import UserError
        from zombiescope.documents.incidents import answer
        from zombiescope.notebook.answers import Diagnosis

        found = answer(self, DiagnoseQuestion(keywords.window(last, start, end, at), incident=incident))
        if found is None:
            raise UserError(f"no incident, or more than one, has an id that starts with {incident}")
        return Diagnosis(found)

    def flamegraph(
        self,
        *,
        last: Length | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        at: Moment | None = None,
        against: str | None = None,
        invert: bool = False,
        by: Literal["none", "owner", "container", "pod", "image", "comm"] = "none",
        **filters: Any,
    ) -> Flamegraph:
        """Where the time went; `against`: how that differs from FROM..TO of this recording. Filters as the command has
        them: cpu, pid, tid, comm, unit, container, pod, image, mode, match. Raises UserError."""
        from zombiescope.documents.flamegraph import answer
        from zombiescope.notebook.answers import Flamegraph

        window, chosen = keywords.window(last, start, end, at), keywords.filters(filters)
        base = None if against is None else sides.window(against)
        return Flamegraph(answer(self, FlamegraphQuestion(window, chosen, invert=invert, against=base, by=by)))

    def heatmap(
        self,
        *,
        last: Length | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        at: Moment | None = None,
        by: Literal["subsecond", "core"] = "subsecond",
        rows: int = 50,
        **filters: Any,
    ) -> Heatmap:
        """When it was busy, by the second and the part of the second, or by core. Raises UserError."""
        from zombiescope.documents.heatmap import answer
        from zombiescope.notebook.answers import Heatmap

        window, chosen = keywords.window(last, start, end, at), keywords.filters(filters)
        return Heatmap(answer(self, HeatmapQuestion(window, chosen, by=by, rows=rows)))

    def files(self, table: str) -> list[str]:
        """The Parquet files of a table, for DuckDB, Polars, Spark and pandas; what is still in the log is not in
        them (`zombiescope compact` puts it there). Raises KeyError."""
        if table not in schema.BY_NAME:
            raise KeyError(f"there is no table {table}; there are {', '.join(schema.BY_NAME)}")
        root = Path(str(self.store.place)) / self.prefix
        right = [each for each in self.manifests if each.revision >= schema.BY_NAME[table].parquet_since]
        return [str(root / each.file(table)) for each in right if table in each.tables]

    def __repr__(self) -> str:
        return f"<Recording of {', '.join(f'{value}' for _, value in self._facts())}>"

    def _repr_html_(self) -> str:
        return html.table(self._facts())

    def _facts(self) -> builtins.list[tuple[str, str]]:
        online = self.node.get("cpus")
        cores = len(online.get("online") or ()) if isinstance(online, dict) else 0
        return [
            ("node", self.name),
            ("recorded", held(self)),
            ("cores", f"{cores or '?'} cores"),
            ("kernel", f"kernel {self.node.get('kernel') or '?'}"),
            ("samples", f"{self.tables.rows['samples']:,} samples"),
            ("size", f"{self.size_bytes / 1e6:.1f} MB"),
        ]


def open_recording(path: Path | str | None = None, node: str | None = None) -> Recording:
    """A recording: a directory, a node's folder in it, a pack, or an object store; without one that of the recorder
    running here. Raises UserError."""
    place = locate.default_dir() if path is None else path
    return reader.open_as(Recording, place, node)
