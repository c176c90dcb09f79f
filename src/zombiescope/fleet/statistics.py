"""The statistics of a fleet, asked with DuckDB: one window of time over the rows that were written (results.py).

Times are those of the nodes' own clocks, and hours are what is compared: clocks that are minutes apart move nothing but
the edge. The window ends with the last hour that a twentieth of the nodes have: one clock that is a year ahead does not
move it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zombiescope.base import json as _json
from zombiescope.base.errors import UserError
from zombiescope.base.packages import install
from zombiescope.base.severity import SEVERITIES
from zombiescope.base.time import HOUR_US
from zombiescope.fleet import tables
from zombiescope.fleet.plan import NODE_DAY
from zombiescope.fleet.results import Key, Results

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "2GB"
SHARE_AT_THE_END = 0.05
LEAST_POINTS = 3


class NoDuckDbError(UserError):
    """DuckDB is an optional part."""


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """A node in the window. None is not measured. `age_s`, `most_dying` and `most_memory_cgroups` are the largest that
    it had in the window; `not_judged`: why its incidents do not say whether it is healthy."""

    node: str
    labels: dict[str, str]
    kernel: str | None
    cpus: int | None
    from_us: int | None
    to_us: int | None
    recorded_s: int
    saturated_s: float | None
    longest_s: float | None
    restarts: int | None
    critical: int | None
    nic: int | None
    dying: int | None
    dying_per_hour: float | None
    memory_cgroups: int | None
    lost: int | None
    damaged: int
    damage: str | None
    ahead_s: float | None
    most_dying: int | None = None
    most_memory_cgroups: int | None = None
    boot: str | None = None
    name: str | None = None
    """As node.json gives it."""
    not_judged: str | None = None
    labels_left_out: int = 0
    labels_changed: bool = False
    age_s: float | None = None
    boots: int = 0


@dataclass(frozen=True, slots=True)
class IncidentFigures:
    node: str
    id: str | None
    from_us: int
    to_us: int
    severity: str
    pattern: str
    culprit: str | None
    hog: str | None
    summary: str | None
    frames: tuple[str, ...]
    gpu_lost_s: float | None
    job_lost_s: float

    @property
    def cause(self) -> tuple[str, str | None]:
        return self.pattern, self.culprit


@dataclass(frozen=True, slots=True)
class LabelSpan:
    node: str
    from_us: int
    to_us: int
    labels: dict[str, str]


@dataclass(slots=True)
class _Boot:
    boot: str
    booted_us: int | None
    first_us: int
    last_us: int


def connection() -> DuckDBPyConnection:
    """Raises NoDuckDbError."""
    try:
        import duckdb
    except ImportError as error:
        raise NoDuckDbError("fleet needs DuckDB, which is not installed", f"{install('fleet')}") from error
    # What is asked about is local files of ours: nothing is loaded from elsewhere.
    return duckdb.connect(config={"memory_limit": MEMORY, "autoinstall_known_extensions": "false"})


class Statistics:
    """One window of one fleet. Close it."""

    def __init__(self, results: Results, known: Mapping[Key, str], last_us: int | None, until_us: int | None) -> None:
        self._con = connection()
        self._results = results
        days = sorted({day for _, day in known})
        self._current(known)
        for name in tables.TABLES:
            self._view(name, results.files(name, days))
        self.end_us = until_us or self._end_us()
        self.start_us = 0 if last_us is None else self.end_us - last_us
        if last_us is None:
            found = self.rows("select min(hour_us) from hours")[0][0]
            self.start_us = min(self.end_us, found or self.end_us)

    def close(self) -> None:
        self._con.close()

    def rows(self, query: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query of ours; values are given beside it, never in it."""
        found: list[tuple[Any, ...]] = self._con.execute(query, list(values)).fetchall()
        return found

    def _current(self, known: Mapping[Key, str]) -> None:
        keys = [(node, day, batch) for (node, day), batch in known.items()]
        columns = list(zip(*keys, strict=True)) or [(), (), ()]
        self._con.register("current_rows", pa.table(
            {name: pa.array(column, pa.string()) for name, column in zip(tables.KEYS, columns, strict=True)}
        ))  # fmt: skip
        self._con.execute("create table current_items as select * from current_rows")

    def _view(self, name: str, files: list[str]) -> None:
        columns = ", ".join((*tables.KEYS, *tables.TABLES[name]))
        if files:
            # Ours: names and columns are of this program, and the files of its own directory.
            listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
            source = f"read_parquet([{listed}], hive_partitioning = false, union_by_name = true)"
        else:
            self._con.register(f"empty_{name}", tables.arrow(name, [], []))
            source = f"empty_{name}"
        self._con.execute(
            f"create table {name} as select {columns} from {source} "  # noqa: S608 - as above
            "semi join current_items using (node, day, batch)"
        )

    def _end_us(self) -> int:
        """The end of the last hour that enough nodes have."""
        query = """
            with counted as (select hour_us, count(distinct node) as n from hours group by hour_us),
                 needed as (select greatest(1, ceil(? * count(distinct node))) as n from hours)
            select max(hour_us) from counted where n >= (select n from needed)"""
        found = self.rows(query, [SHARE_AT_THE_END])[0][0]
        if found is None:
            found = self.rows("select max(from_us) from incidents")[0][0]
            return int(found or 0) + 1
        return int(found) + HOUR_US

    # --- what is asked -----------------------------------------------------------------------------------------------

    def nodes(self) -> list[NodeFigures]:
        spans = self.label_spans()
        latest: dict[str, dict[str, str]] = {}
        changed: set[str] = set()
        for span in spans:
            before = latest.get(span.node)
            if before is not None and before != span.labels:
                changed.add(span.node)
            latest[span.node] = span.labels
        boots = {
            node: [each for each in found if each.last_us >= self.start_us and each.first_us < self.end_us]
            for node, found in self._boots().items()
        }
        boots = {node: found for node, found in boots.items() if found}
        slopes = self._slopes(boots)
        return [
            replace(
                self._node(row, latest), labels_changed=row[0] in changed, boots=len(boots.get(row[0], ())),
                age_s=self._age_s(boots.get(row[0], ())), dying_per_hour=slopes.get(row[0]),
            )
            for row in self.rows(_NODES, [self.start_us, self.end_us, NODE_DAY])
        ]  # fmt: skip

    def _node(self, row: tuple[Any, ...], latest: Mapping[str, dict[str, str]]) -> NodeFigures:
        node, own, kernel, *figures = row
        labels = latest.get(node) or _labels(own, kernel)
        return NodeFigures(*(node, labels, labels.get("kernel") or kernel, *figures))

    def _boots(self) -> dict[str, list[_Boot]]:
        """Every boot of each node, the earliest first. When it began is what both clocks of the node say last; else its
        first record, where an earlier boot was recorded."""
        query = """
            select node, boot, booted_us, first_us, last_us from boots where boot is not null
            order by node, last_us, booted_us nulls first, first_us"""
        found: dict[str, dict[str, _Boot]] = {}
        for node, boot, booted_us, first_us, last_us in self.rows(query):
            known = found.setdefault(node, {}).setdefault(boot, _Boot(boot, booted_us, first_us, last_us))
            known.booted_us = known.booted_us if booted_us is None else booted_us
            known.first_us, known.last_us = min(known.first_us, first_us), max(known.last_us, last_us)
        ordered = {
            node: sorted(boots.values(), key=lambda each: (each.last_us, each.boot)) for node, boots in found.items()
        }
        for boots in ordered.values():
            for later in boots[1:]:
                later.booted_us = later.first_us if later.booted_us is None else later.booted_us
        return ordered

    def _age_s(self, boots: Sequence[_Boot]) -> float | None:
        """For how long a node was up at most, in the window."""
        ages = [(min(each.last_us, self.end_us) - each.booted_us) / 1e6 for each in boots if each.booted_us is not None]
        return max((age for age in ages if age >= 0), default=None)

    def _slopes(self, boots: Mapping[str, Sequence[_Boot]]) -> dict[str, float]:
        """Dying cgroups per hour in the last boot: a regression in whole numbers, so that it comes out the same to the
        last digit in whatever order rows are read."""
        query = """
            select node, boot, hour_us, max(dying) from hours where hour_us >= ? and hour_us < ? and dying is not null
            group by all order by node, boot, hour_us"""
        points: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for node, boot, hour_us, dying in self.rows(query, [self.start_us - HOUR_US + 1, self.end_us]):
            if node in boots and boot == boots[node][-1].boot:
                points[node].append((hour_us // HOUR_US, dying))
        return {node: slope for node, found in points.items() if (slope := _slope(found)) is not None}

    def label_spans(self) -> list[LabelSpan]:
        """Under which labels each node ran, in the order of time; the kernel is one of them."""
        query = """
            select s.node, s.from_us, s.to_us, coalesce(s.labels, i.labels), coalesce(s.kernel, i.kernel)
            from spans s left join items i on i.node = s.node and i.day = ?
            where s.to_us >= ? and s.from_us < ? order by s.node, s.from_us"""
        found = self.rows(query, [NODE_DAY, self.start_us, self.end_us])
        return [LabelSpan(node, first, last, _labels(text, kernel)) for node, first, last, text, kernel in found]

    def incidents(self, least: str = "warning") -> list[IncidentFigures]:
        """Of the window, at least so severe; in the order of time."""
        severities = SEVERITIES[SEVERITIES.index(least) :]
        marks = ", ".join("?" * len(severities))
        query = f"""
            select node, id, from_us, to_us, severity, pattern, culprit, hog, summary, frames, gpu_lost_s, job_lost_s
            from incidents where from_us < ? and to_us >= ? and severity in ({marks}) order by from_us, node, id"""  # noqa: S608 - marks
        found = self.rows(query, [self.end_us, self.start_us, *severities])
        return [IncidentFigures(*(*row[:9], _frames(row[9]), *row[10:])) for row in found]

    def units(self) -> list[tuple[str, str, int]]:
        """Node, unit and its CPU in milliseconds."""
        return self.rows("select node, unit, sum(cpu_ms)::bigint from units group by all order by all")

    def hours(self) -> list[tuple[str, int, int | None, int | None]]:
        """Node, hour, milliseconds of lost cores, dying cgroups; in order."""
        query = """
            select node, hour_us, sum(saturated_ms)::bigint, max(dying) from hours where hour_us >= ? and hour_us < ?
            group by all order by node, hour_us"""
        return self.rows(query, [self.start_us - HOUR_US + 1, self.end_us])

    def damage(self) -> list[tuple[str, str, str]]:
        """Node, day and what could not be read, for every item that has any."""
        return self.rows("select node, day, damage from items where damaged > 0 order by all")

    def read(self) -> tuple[int, int, float]:
        """Files, bytes and seconds of work that all of it took."""
        found = self.rows("select sum(files)::bigint, sum(bytes)::bigint, sum(seconds) from items")[0]
        return int(found[0] or 0), int(found[1] or 0), float(found[2] or 0)


_NODES = """
with of_hours as (
    select node, hour_us, max_by(boot, hour_us) as boot, sum(seconds) as seconds, sum(saturated_ms) as saturated_ms,
           max(longest_ms) as longest_ms, max(memory_cgroups) as memory_cgroups, max(dying) as dying,
           sum(restarts) as restarts, sum(critical) as critical, sum(nic) as nic, sum(lost) as lost
    from hours where hour_us >= $1 - 3599999999 and hour_us < $2 group by node, hour_us
), figures as (
    select node, min(hour_us) as from_us, max(hour_us) + 3600000000 as to_us, sum(seconds)::bigint as recorded_s,
           sum(saturated_ms) / 1e3 as saturated_s, max(longest_ms) / 1e3 as longest_s,
           sum(restarts)::bigint as restarts, sum(critical)::bigint as critical, sum(nic)::bigint as nic,
           max_by(dying, hour_us) as dying,
           max_by(memory_cgroups, hour_us) as memory_cgroups, sum(lost)::bigint as lost,
           max(dying) as most_dying, max(memory_cgroups) as most_memory_cgroups
    from of_hours group by node
), broken as (
    select node, sum(damaged)::bigint as damaged, min(damage) as damage, max(ahead_s) as ahead_s
    from items group by node
), names as (select distinct node from items)
select n.node, i.labels, i.kernel, i.cpus, f.from_us, f.to_us, coalesce(f.recorded_s, 0), f.saturated_s, f.longest_s,
       f.restarts, f.critical, f.nic, f.dying, null, f.memory_cgroups, f.lost,
       b.damaged, b.damage, b.ahead_s, f.most_dying, f.most_memory_cgroups, i.boot, i.name, i.not_judged,
       coalesce(i.labels_left_out, 0)
from names n left join items i on i.node = n.node and i.day = $3 left join figures f on f.node = n.node
left join broken b on b.node = n.node order by n.node"""


def _slope(points: Sequence[tuple[int, int]]) -> float | None:
    """Of three points or more, as dying cgroups per hour."""
    if len(points) < LEAST_POINTS:
        return None
    n, x, y = len(points), sum(hour for hour, _ in points), sum(dying for _, dying in points)
    xy, xx = sum(hour * dying for hour, dying in points), sum(hour * hour for hour, _ in points)
    width = n * xx - x * x
    return (n * xy - x * y) / width if width else None


def _labels(text: str | None, kernel: str | None) -> dict[str, str]:
    said: dict[str, str] = _json.loads(text) if text else {}
    return {**said, "kernel": kernel} if kernel else said


def _frames(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(";")) if text else ()
