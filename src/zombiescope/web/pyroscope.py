"""Pyroscope's query API, read-only: Grafana's built-in data source opens a recording without a plug-in.

Protocol: querier.v1.QuerierService of grafana/pyroscope, as Connect unary calls (POST, protobuf or JSON). Answered are
ProfileTypes, LabelNames, LabelValues, Series, SelectMergeStacktraces, SelectMergeProfile, SelectSeries and Diff; the
others answer "unimplemented".

Labels are node, cpu, comm, unit, pod, container and service_name (unit, or the container as its pod calls it). They are
not stored as series: a selector is resolved to tasks and cores when it is used, so any combination works, and a step
may be as short as the samples are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from zombiescope.base.errors import QuestionError
from zombiescope.query import flame
from zombiescope.query.exports import pprof
from zombiescope.query.exports.samples import ExportSamples
from zombiescope.query.expression import Linear
from zombiescope.query.flame import Tree
from zombiescope.query.groups import Groups, groups
from zombiescope.query.levels import Level
from zombiescope.query.rate import period_us
from zombiescope.query.selection import Filters, ImportFacts, Selection
from zombiescope.store.columns import Ints
from zombiescope.store.reader import Recording
from zombiescope.web.recordings import Recordings
from zombiescope.web.wire import Shape, Wire

PREFIX = "/querier.v1.QuerierService/"
MOST_BYTES = 64 << 10
MOST_NODES, MOST_DEFAULT_NODES = 65_536, 8_192
MOST_POINTS = 11_000
MOST_SERIES = 1_000
MOST_RECORDINGS = 16
LONGEST_SELECTOR = 4_096
CPU, COUNT = "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "process_cpu:samples:count:cpu:nanoseconds"
_LEVELS: Mapping[str, Level] = {
    "comm": "comm", "unit": "unit", "pod": "pod", "container": "container", "service_name": "owner",
}  # fmt: skip
LABELS = ("node", "cpu", *_LEVELS)
_OF_TYPE = ("__name__", "__type__", "__unit__", "__period_type__", "__period_unit__", "__profile_type__")
"""What the profile type says; every sample is of it."""

_STRING, _INT = "string", "int"
_PAIR: Shape = {"name": Wire(1, _STRING), "value": Wire(2, _STRING)}
_RANGE: Shape = {"start": Wire(1, _INT), "end": Wire(2, _INT)}
_SELECT: Shape = {
    "profile_typeID": Wire(1, _STRING), "label_selector": Wire(2, _STRING), "start": Wire(3, _INT),
    "end": Wire(4, _INT), "max_nodes": Wire(5, _INT), "format": Wire(6, _INT),
}  # fmt: skip
_LEVEL: Shape = {"values": Wire(1, _INT, True)}
_FLAMEGRAPH: Shape = {
    "names": Wire(1, _STRING, True), "levels": Wire(2, _LEVEL, True), "total": Wire(3, _INT),
    "max_self": Wire(4, _INT),
}  # fmt: skip
_TYPE: Shape = {
    "ID": Wire(1, _STRING), "name": Wire(2, _STRING), "sample_type": Wire(4, _STRING),
    "sample_unit": Wire(5, _STRING), "period_type": Wire(6, _STRING), "period_unit": Wire(7, _STRING),
}  # fmt: skip
_SERIES: Shape = {
    "labels": Wire(1, _PAIR, True),
    "points": Wire(2, {"value": Wire(1, "double"), "timestamp": Wire(2, _INT)}, True),
}
NAMES: Shape = {"names": Wire(1, _STRING, True)}


class Method(NamedTuple):
    request: Shape
    response: Shape | None
    """None where the answer is a profile of pprof."""
    make: Callable[[Recordings, Mapping[str, Any]], Any]


# --- selectors --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Matcher:
    name: str
    operator: str
    value: str
    expression: Linear | None = field(default=None, compare=False)

    def passes(self, values: Sequence[str]) -> list[bool]:
        if self.expression is not None:
            found = self.expression.found_in(values)
        else:
            found = [value == self.value for value in values]
        return [not one for one in found] if self.operator.startswith("!") else found


_MATCHER = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_.]*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(,|$)')


def matchers(selector: str) -> list[Matcher]:
    """Raises QuestionError."""
    if len(selector) > LONGEST_SELECTOR:
        raise QuestionError(
            f"a selector has at most {LONGEST_SELECTOR} characters", "name fewer values", option="label_selector"
        )
    text = selector.strip()
    if text.startswith("{") != text.endswith("}"):
        raise QuestionError(f"{selector!r:.100} is not a selector", 'write {comm="kubelet"}', option="label_selector")
    text = text.removeprefix("{").removesuffix("}").strip()
    found, at = [], 0
    while at < len(text):
        match = _MATCHER.match(text, at)
        if match is None:
            what = f"{text[at : at + 60]!r} is not a matcher"
            raise QuestionError(what, 'write comm="kubelet" or comm=~"kube.*"', option="label_selector")
        found.append(_matcher(match[1], match[2], re.sub(r"\\(.)", r"\1", match[3])))
        at = match.end()
    return found


def _matcher(name: str, operator: str, value: str) -> Matcher:
    if not operator.endswith("~"):
        return Matcher(name, operator, value)
    try:
        return Matcher(name, operator, value, Linear.compiled(f"^(?:{value})$"))
    except ValueError as error:
        raise QuestionError(
            f"{value!r:.100} is not a regular expression: {error}", "RE2 has no look-around", option="label_selector"
        ) from None


# --- what is selected -------------------------------------------------------------------------------------------------


class Chosen:
    """The samples of one recording that a selector leaves, in a time range."""

    def __init__(self, recording: Recording, start_us: int, end_us: int, wanted: Sequence[Matcher]) -> None:
        start_us, end_us = max(start_us, recording.start_us), min(end_us, recording.end_us + 1)
        self.recording = recording
        self.cpus = _cpus(recording)
        passing = _passing(wanted, "cpu", [str(cpu) for cpu in self.cpus])
        cpus = None if passing is None else {cpu for cpu, passes in zip(self.cpus, passing, strict=True) if passes}
        self.is_empty = start_us >= end_us or cpus == set() or not _known(wanted)
        self.selection = Selection(recording, start_us, max(start_us + 1, end_us), Filters(cpus=frozenset(cpus or ())))
        self._groups: dict[str, Groups] = {}
        self._wanted = [
            (self.groups(name), np.array(passing, bool))
            for name in _LEVELS
            if (passing := _passing(wanted, name, self.values(name) if _any(wanted, name) else [])) is not None
        ]

    @property
    def on_tasks(self) -> bool:
        """Whether the selector names more than cores."""
        return bool(self._wanted)

    def groups(self, name: str) -> Groups:
        if name not in self._groups:
            self._groups[name] = groups(self.selection, _LEVELS[name])
        return self._groups[name]

    def values(self, name: str) -> list[str]:
        """Of each group of a label; the first is that of tasks without one."""
        return ["", *(group.name for group in self.groups(name).all[1:])]

    def rows(self, *columns: str) -> Iterator[tuple[Ints, ...]]:
        """Columns of the selected samples, and the weight of each."""
        if self.is_empty:
            return
        weighted = ImportFacts.of(self.recording).weighted
        read = tuple(dict.fromkeys(("task", *columns, "period")))
        for batch in self.selection.columns(*read):
            values = dict(zip(read, batch, strict=True))
            kept = np.ones(len(values["task"]), bool)
            for found, passing in self._wanted:
                kept &= passing[found.of(values["task"])]
            weight = values["period"] if weighted else np.ones(len(kept), np.int64)
            if kept.any():
                yield (*(values[name][kept] for name in columns), weight[kept])

    def counts(self) -> Ints:
        """How often each stack was sampled."""
        total = np.zeros(self.selection.stacks.count, np.int64)
        for stack, weight in self.rows("stack"):
            np.add.at(total, self.selection.stacks.rows_of(stack), weight)
        return total

    def unit(self, kind: str) -> float:
        """What a sample counts in a profile of this type."""
        period = period_us(self.selection)
        return 1.0 if kind == COUNT or period is None else 1000 * period


def _cpus(recording: Recording) -> list[int]:
    cpus = recording.node.get("cpus")
    online = cpus.get("online") if isinstance(cpus, dict) else None
    return [cpu for cpu in online if isinstance(cpu, int)] if isinstance(online, list) else []


def _any(wanted: Sequence[Matcher], name: str) -> bool:
    return any(one.name == name for one in wanted)


def _passing(wanted: Sequence[Matcher], name: str, values: Sequence[str]) -> list[bool] | None:
    """Which values pass every matcher of this label; None where there is none."""
    results = [one.passes(values) for one in wanted if one.name == name]
    return [all(each) for each in zip(*results, strict=True)] if results else None


def _known(wanted: Sequence[Matcher]) -> bool:
    """A label that nothing has is empty everywhere."""
    others = [one for one in wanted if one.name not in LABELS and one.name not in _OF_TYPE]
    return all(one.passes([""])[0] for one in others)


def _kind(asked: Mapping[str, Any]) -> str:
    kind = asked.get("profile_typeID") or CPU
    if kind not in (CPU, COUNT):
        raise QuestionError(f"there is no profile type {kind!r:.100}", f"there are {CPU} and {COUNT}")
    return str(kind)


def _each(recordings: Recordings, asked: Mapping[str, Any], selectors: Sequence[str]) -> Iterator[Chosen]:
    """The recordings that reach into the range and that the selector names, one after the other."""
    wanted = [one for selector in selectors for one in matchers(selector)]
    start_us, end_us = _range_us(asked)
    left = MOST_RECORDINGS
    for one in recordings.document()["recordings"]:
        if one["from"] is None or not left:
            continue
        if one["to"] * 1e6 < start_us or one["from"] * 1e6 > end_us:
            continue
        passing = _passing(wanted, "node", [str(one["title"])])
        if passing is not None and not passing[0]:
            continue
        left -= 1
        with ExitStack() as stack:
            yield Chosen(stack.enter_context(recordings.named(one["key"]).apart()), start_us, end_us, wanted)


def _range_us(asked: Mapping[str, Any]) -> tuple[int, int]:
    start, end = int(asked.get("start") or 0), int(asked.get("end") or 0)
    if end and end <= start:
        raise QuestionError("the range ends before it starts", "send start and end in milliseconds", option="end")
    longest = 1 << 62
    return min(max(start * 1000, -longest), longest), min(end * 1000, longest) if end else longest


# --- labels -----------------------------------------------------------------------------------------------------------


def _profile_types(_: Recordings, __: Mapping[str, Any]) -> dict[str, Any]:
    names = ("name", "sample_type", "sample_unit", "period_type", "period_unit")
    return {"profile_types": [{"ID": one, **dict(zip(names, one.split(":"), strict=True))} for one in (CPU, COUNT)]}


def _label_names(_: Recordings, __: Mapping[str, Any]) -> dict[str, Any]:
    return {"names": sorted((*LABELS, "__profile_type__"))}


def _label_values(recordings: Recordings, asked: Mapping[str, Any]) -> dict[str, Any]:
    name = str(asked.get("name") or "")
    if name == "__profile_type__":
        return {"names": [CPU, COUNT]}
    found: set[str] = set()
    for chosen in _each(recordings, asked, asked["matchers"]):
        found |= set(_values(chosen, name))
    return {"names": sorted(found - {""}, key=lambda one: (not one.isdigit(), int(one) if one.isdigit() else 0, one))}


def _values(chosen: Chosen, name: str) -> list[str]:
    if name == "node":
        return [chosen.recording.name]
    if name == "cpu":
        return [str(cpu) for cpu in chosen.cpus]
    return chosen.values(name) if name in _LEVELS else []


def _series(recordings: Recordings, asked: Mapping[str, Any]) -> dict[str, Any]:
    names = [name for name in asked["label_names"] if name in (*LABELS, "__profile_type__")]
    names = names or ["node", "service_name", "__profile_type__"]
    found: set[tuple[tuple[str, str], ...]] = set()
    for chosen in _each(recordings, asked, asked["matchers"]):
        levels = [name for name in names if name in _LEVELS]
        of_task = np.stack([chosen.groups(name).of_task for name in levels]) if levels else np.zeros((0, 1), np.int64)
        for places in np.unique(of_task, axis=1).T.tolist():
            known = {"node": chosen.recording.name, "__profile_type__": CPU}
            known |= {name: chosen.values(name)[place] for name, place in zip(levels, places, strict=True)}
            found.add(tuple((name, known[name]) for name in names if known.get(name)))
            if len(found) >= MOST_SERIES:
                break
    return {"labels_set": [{"labels": [_pair(*one) for one in row]} for row in sorted(found)]}


def _pair(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


# --- flame graphs -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Node:
    """Values of the left and, in a difference, of the right profile."""

    total: list[int] = field(default_factory=lambda: [0, 0])
    own: list[int] = field(default_factory=lambda: [0, 0])
    children: dict[str, _Node] = field(default_factory=dict)

    def add(self, tree: Tree, unit: float, side: int) -> None:
        nodes = [self]
        for place in range(len(tree.value)):
            if place:
                above = nodes[int(tree.parent[place])]
                nodes.append(above.children.setdefault(tree.name(place).name, _Node()))
            nodes[place].total[side] += round(int(tree.value[place]) * unit)
            nodes[place].own[side] += round(int(tree.self_value[place]) * unit)


def _folded(recordings: Recordings, asked: Mapping[str, Any], root: _Node, side: int) -> None:
    nodes = min(int(asked.get("max_nodes") or MOST_DEFAULT_NODES), MOST_NODES)
    for chosen in _each(recordings, asked, [str(asked.get("label_selector") or "{}")]):
        tree = flame.fold(chosen.selection.stacks, chosen.counts(), below_ratio=min(1e-5, 0.2 / max(nodes, 1)))
        root.add(flame.prune(tree, np.ones(len(tree.value)), nodes), chosen.unit(_kind(asked)), side)


def _levels(root: _Node, sides: int) -> dict[str, Any]:
    """Pyroscope's form: each level is a list of numbers, and a node begins so far behind the end of the one before."""
    names: dict[str, int] = {"total": 0}
    levels, row, most = [], [(root, "total", [0] * sides)], 0
    while row:
        values: list[int] = []
        ends, below = [0] * sides, []
        for node, name, begins in row:
            for side in range(sides):
                values += [begins[side] - ends[side], node.total[side], node.own[side]]
                ends[side] = begins[side] + node.total[side]
            values.append(names.setdefault(name, len(names)))
            most = max(most, sum(node.own[:sides]))
            begin = list(begins)
            for child_name, child in sorted(node.children.items()):
                below.append((child, child_name, list(begin)))
                begin = [at + child.total[side] for side, at in enumerate(begin)]
        levels.append({"values": values})
        row = below
    return {"names": list(names), "levels": levels, "total": sum(root.total[:sides]), "max_self": most}


def _merged(recordings: Recordings, asked: Mapping[str, Any]) -> dict[str, Any]:
    _kind(asked)
    root = _Node()
    _folded(recordings, asked, root, 0)
    return {"flamegraph": _levels(root, 1)}


def _difference(recordings: Recordings, asked: Mapping[str, Any]) -> dict[str, Any]:
    root = _Node()
    for side, name in enumerate(("left", "right")):
        _kind(asked.get(name) or {})
        _folded(recordings, asked.get(name) or {}, root, side)
    found = _levels(root, 2)
    return {"flamegraph": {**found, "leftTicks": root.total[0], "rightTicks": root.total[1]}}


def _pprof(recordings: Recordings, asked: Mapping[str, Any]) -> bytes:
    """Of the first recording that the selector names: pprof has no place for the name of a node."""
    import gzip

    _kind(asked)
    for chosen in _each(recordings, asked, [str(asked.get("label_selector") or "{}")]):
        if chosen.on_tasks:
            what = "pprof is answered for whole nodes and cores"
            raise QuestionError(what, "select by node and cpu, or use `zombiescope export --format pprof`")
        samples = ExportSamples(chosen.selection)
        return gzip.decompress(pprof.profile(samples, samples.batches(), *chosen.selection.span))
    return b""


# --- time series ------------------------------------------------------------------------------------------------------


def _select_series(recordings: Recordings, asked: Mapping[str, Any]) -> dict[str, Any]:
    step = float(asked.get("step") or 0)
    if not math.isfinite(step) or step < 0.001:
        raise QuestionError(
            "the step is not a number of seconds, or is below a millisecond", "send 0.02 or more", option="step"
        )
    step_us = round(step * 1e6)
    start_us, end_us = _range_us(asked)
    columns = -(-(end_us - start_us) // step_us)
    if columns > MOST_POINTS:
        raise QuestionError(f"a series has at most {MOST_POINTS:,} points", "ask for a longer step", option="step")
    by = [name for name in asked["group_by"] if name in LABELS]
    rows: dict[tuple[str, ...], np.ndarray[Any, Any]] = {}
    for chosen in _each(recordings, asked, [str(asked.get("label_selector") or "{}")]):
        for labels, points in _points(chosen, by, start_us, step_us, columns, chosen.unit(_kind(asked))):
            rows[labels] = rows.get(labels, 0) + points
    limit = min(int(asked.get("limit") or MOST_SERIES) or MOST_SERIES, MOST_SERIES)
    shown = sorted(rows.items(), key=lambda one: -float(one[1].sum()))[:limit]
    return {
        "series": [
            {
                "labels": [_pair(name, value) for name, value in zip(by, labels, strict=True)],
                "points": [
                    {"value": float(points[column]), "timestamp": (start_us + column * step_us) // 1000}
                    for column in np.flatnonzero(points).tolist()
                ],
            }
            for labels, points in shown
        ]
    }


def _points(
    chosen: Chosen, by: Sequence[str], start_us: int, step_us: int, columns: int, unit: float
) -> Iterator[tuple[tuple[str, ...], np.ndarray[Any, Any]]]:
    """Of each combination of labels that was sampled."""
    found: dict[int, np.ndarray[Any, Any]] = {}
    sizes = [_size(chosen, name) for name in by]
    for time, cpu, task, weight in chosen.rows("time", "cpu", "task"):
        column = (time - start_us) // step_us
        group = np.zeros(len(time), np.int64)
        for name, size in zip(by, sizes, strict=True):
            group = group * size + _places(chosen, name, cpu, task)
        keys, place = np.unique(group * columns + column, return_inverse=True)
        sums = np.bincount(place, weight, len(keys))
        for key, total in zip(keys.tolist(), sums.tolist(), strict=True):
            points = found.setdefault(key // columns, np.zeros(columns))
            points[key % columns] += total * unit
    for group_number, points in found.items():
        labels, rest = [], group_number
        for name, size in reversed(list(zip(by, sizes, strict=True))):
            labels.append(_label(chosen, name, rest % size))
            rest //= size
        yield tuple(reversed(labels)), points


def _size(chosen: Chosen, name: str) -> int:
    if name == "node":
        return 1
    return 1 << 17 if name == "cpu" else len(chosen.groups(name).all)


def _places(chosen: Chosen, name: str, cpu: Ints, task: Ints) -> Ints | int:
    if name == "node":
        return 0
    return cpu + 1 if name == "cpu" else chosen.groups(name).of(task)


def _label(chosen: Chosen, name: str, place: int) -> str:
    if name == "node":
        return str(chosen.recording.name)
    if name == "cpu":
        return str(place - 1) if place else ""
    return chosen.values(name)[place]


METHODS: Mapping[str, Method] = {
    "ProfileTypes": Method(_RANGE, {"profile_types": Wire(1, _TYPE, True)}, _profile_types),
    "LabelNames": Method(
        {"matchers": Wire(1, _STRING, True), "start": Wire(2, _INT), "end": Wire(3, _INT)}, NAMES, _label_names
    ),
    "LabelValues": Method(
        {
            "name": Wire(1, _STRING), "matchers": Wire(2, _STRING, True), "start": Wire(3, _INT),
            "end": Wire(4, _INT),
        },
        NAMES,
        _label_values,
    ),
    "Series": Method(
        {
            "matchers": Wire(1, _STRING, True), "label_names": Wire(2, _STRING, True), "start": Wire(3, _INT),
            "end": Wire(4, _INT),
        },
        {"labels_set": Wire(2, {"labels": Wire(1, _PAIR, True)}, True)},
        _series,
    ),
    "SelectMergeStacktraces": Method(_SELECT, {"flamegraph": Wire(1, _FLAMEGRAPH)}, _merged),
    "SelectMergeProfile": Method({name: one for name, one in _SELECT.items() if name != "format"}, None, _pprof),
    "SelectSeries": Method(
        {
            **{name: one for name, one in _SELECT.items() if one.number < 5},
            "group_by": Wire(5, _STRING, True), "step": Wire(6, "double"), "limit": Wire(9, _INT),
        },
        {"series": Wire(1, _SERIES, True)},
        _select_series,
    ),
    "Diff": Method(
        {"left": Wire(1, _SELECT), "right": Wire(2, _SELECT)},
        {"flamegraph": Wire(1, {**_FLAMEGRAPH, "leftTicks": Wire(5, _INT), "rightTicks": Wire(6, _INT)})},
        _difference,
    ),
}  # fmt: skip
