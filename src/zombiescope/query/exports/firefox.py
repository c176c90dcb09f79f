"""Firefox Profiler's processed profile format, version 60, which every later front end upgrades when it opens a file.

A thread of the recording is a thread there, its samples at their times; what happened on the node (nic_reset,
unit_restart, ...) are markers of a first thread of their own. Stacks, frames and functions are shared by all threads.
threadCPUDelta says how much CPU a sample stands for: without it a thread that ran once a minute would look busy.

Categories: kernel, kernel module, user, generated code, and other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any, BinaryIO

import numpy as np

from zombiescope.query import events
from zombiescope.query.exports.interner import Interner
from zombiescope.query.exports.samples import ExportSamples, ProfileTask, SampleBatch, module_of
from zombiescope.query.stacks import Function
from zombiescope.store.columns import Ints
from zombiescope.store.event import Event

VERSION = 60
GECKO_VERSION = 31

CATEGORIES = (
    ("Other", "grey"),
    ("User", "yellow"),
    ("Kernel", "orange"),
    ("Kernel module", "red"),
    ("Generated code", "green"),
    ("Python", "blue"),
)
_CATEGORY_OF = {"user": 1, "vdso": 1, "kernel": 2, "bpf": 3, "module": 3, "jit": 4, "python": 5}
_LIBRARY = 1  # the resource type of a shared library

MARKER = "node event"
_SHOWN_AT = ["marker-chart", "marker-table", "timeline-overview"]
_FIELDS = ("text", "severity", "source", "fields")


def write(samples: ExportSamples, out: BinaryIO, *, title: str = "") -> None:
    rows = samples.everything()
    shared = _Shared(samples)
    out.write(b'{"meta": ' + _json(_meta(samples, title)) + b',\n"libs": [], "pages": [], "threads": [\n')
    out.write(_json(_node_thread(samples, shared)))
    for task, chosen in _threads(samples, rows):
        out.write(b",\n" + _json(_thread(samples, shared, task, rows.cut(chosen))))
    out.write(b'],\n"shared": ' + _json(shared.tables()) + b"}\n")


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _meta(samples: ExportSamples, title: str) -> dict[str, Any]:
    cpus = samples.node.get("cpus")
    online = cpus.get("online") if isinstance(cpus, dict) else None
    return {
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": VERSION,
        "interval": (samples.period_ns or 1_000_000) / 1e6,
        "startTime": samples.selection.start_us / 1000,
        "profilingStartTime": 0,
        "profilingEndTime": (samples.selection.end_us - samples.selection.start_us) / 1000,
        "shutdownTime": None,
        "processType": 0,
        "product": title or samples.name,
        "importedFrom": f"zombiescope {version('zombiescope')}",
        "stackwalk": 1,
        "debug": False,
        "platform": "Linux",
        "oscpu": f"Linux {samples.node.get('kernel') or ''}".strip(),
        "toolkit": "",
        "logicalCPUs": len(online) if isinstance(online, list) else 0,
        "symbolicated": True,
        "symbolicationNotSupported": True,
        "usesOnlyOneStackType": True,
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"},
        "categories": [{"name": name, "color": colour, "subcategories": ["Other"]} for name, colour in CATEGORIES],
        "markerSchema": [
            {
                "name": MARKER,
                "display": _SHOWN_AT,
                "chartLabel": "{marker.data.text}",
                "tableLabel": "{marker.data.text}",
                "tooltipLabel": "{marker.name}",
                "fields": [{"key": key, "label": key, "format": "string"} for key in _FIELDS],
            }
        ],
        "extensions": {"id": [], "name": [], "baseURL": [], "length": 0},
    }


# --- threads ---------------------------------------------------------------------------------------------------------


def _threads(samples: ExportSamples, rows: SampleBatch) -> Iterator[tuple[ProfileTask, Ints]]:
    """Every thread with its samples, the busiest first. A thread that changed its name goes by the last one."""
    named: Interner[tuple[int | None, int | None]] = Interner()
    number_of = np.array([named.position((task.pid, task.tid)) for task in samples.tasks], np.int64)
    group_of = number_of[rows.task]
    order = np.argsort(group_of, kind="stable")
    bounds = np.searchsorted(group_of[order], np.arange(len(named) + 1))
    groups = [order[bounds[number] : bounds[number + 1]] for number in range(len(named))]
    for chosen in sorted(groups, key=len, reverse=True):
        if len(chosen):
            yield samples.tasks[int(rows.task[chosen[-1]])], chosen


def _thread(samples: ExportSamples, shared: _Shared, task: ProfileTask, rows: SampleBatch) -> dict[str, Any]:
    weights = samples.weights(rows)
    table: dict[str, Any] = {
        "length": len(rows),
        "stack": shared.stacks(rows.stack).tolist(),
        "time": _ms(samples, rows.time_us),
        "weight": None if bool((weights == 1).all()) else weights.tolist(),
        "weightType": "samples",
    }
    if samples.period_ns is not None and samples.events[int(rows.event[0])].is_clock:
        table["threadCPUDelta"] = [round(samples.period_ns / 1000)] * len(rows)
    comm = task.comm or "?"
    where = task.owner
    return _thread_head(
        name=comm,
        process=f"{comm} ({where})" if where else comm,
        pid="0" if task.pid is None else str(task.pid),
        tid=task.tid if task.tid is not None else 0,
        main=task.pid == task.tid,
    ) | {"samples": table, "markers": _markers([], shared, samples)}


def _node_thread(samples: ExportSamples, shared: _Shared) -> dict[str, Any]:
    found = events.events(samples.selection.recording, *samples.selection.span)
    nothing = {"length": 0, "stack": [], "time": [], "weight": None, "weightType": "samples"}
    head = _thread_head(name=samples.name, process=f"{samples.name}: events", pid="node", tid="node", main=True)
    return head | {"samples": nothing, "markers": _markers(found, shared, samples), "showMarkersInTimeline": True}


def _thread_head(*, name: str, process: str, pid: str, tid: int | str, main: bool) -> dict[str, Any]:
    return {
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "name": name,
        "isMainThread": main,
        "processName": process,
        "pid": pid,
        "tid": tid,
    }


def _markers(found: Sequence[Event], shared: _Shared, samples: ExportSamples) -> dict[str, Any]:
    times = [(event.at_us - samples.selection.start_us) / 1000 for event in found]
    return {
        "length": len(found),
        "name": [shared.text(event.kind) for event in found],
        "startTime": times,
        "endTime": [None] * len(found),
        "phase": [0] * len(found),  # an instant
        "category": [0] * len(found),
        "data": [
            {
                "type": MARKER,
                "text": event.text,
                "severity": event.severity,
                "source": event.source,
                "fields": json.dumps(event.fields) if event.fields else "",
            }
            for event in found
        ],
    }


def _ms(samples: ExportSamples, time_us: Ints) -> list[float]:
    found: list[float] = ((time_us - samples.selection.start_us) / 1000).tolist()
    return found


# --- tables of all threads -------------------------------------------------------------------------------------------


class _Shared:
    def __init__(self, samples: ExportSamples) -> None:
        self._samples = samples
        self._strings: Interner[str] = Interner()
        self._functions: Interner[int] = Interner()
        self._nodes: dict[tuple[int, int], int] = {}
        self._leaf: dict[int, int] = {}

    def text(self, value: str) -> int:
        return self._strings.position(value)

    def stacks(self, numbers: Ints) -> Ints:
        """The node of the tree of stacks that each of these stacks ends in."""
        unique, positions = np.unique(numbers, return_inverse=True)
        leaves = np.array([self._leaf_of(number) for number in unique.tolist()], np.int64)
        found: Ints = leaves[positions]
        return found

    def _leaf_of(self, number: int) -> int:
        node = self._leaf.get(number, -1)
        if node < 0:
            for function in self._samples.functions(number):
                step = (node, self._functions.position(function))
                node = self._nodes.setdefault(step, len(self._nodes))
            self._leaf[number] = node
        return node

    def tables(self) -> dict[str, Any]:
        functions = [self._samples.stacks.functions[position] for position in self._functions]
        resources: Interner[str] = Interner()
        resource_of = [resources.position(module) if (module := module_of(each)) else -1 for each in functions]
        names = [self.text(each.name) for each in functions]
        libraries = [self.text(module) for module in resources]
        return {
            "stackTable": {
                "length": len(self._nodes),
                "frame": [function for _, function in self._nodes],
                "prefix": [node if node >= 0 else None for node, _ in self._nodes],
            },
            "frameTable": _frame_table(functions),
            "funcTable": _func_table(names, resource_of),
            "resourceTable": {
                "length": len(libraries),
                "lib": [None] * len(libraries),
                "name": libraries,
                "host": [None] * len(libraries),
                "type": [_LIBRARY] * len(libraries),
            },
            "nativeSymbols": {"length": 0, "libIndex": [], "address": [], "name": [], "functionSize": []},
            "sources": {"length": 0, "id": [], "filename": []},
            "stringArray": list(self._strings),
        }


def _frame_table(functions: Sequence[Function]) -> dict[str, Any]:
    count = len(functions)
    return {
        "length": count,
        "func": list(range(count)),
        "category": [_CATEGORY_OF.get(each.kind, 0) for each in functions],
        "subcategory": [0] * count,
        "address": [-1] * count,
        "inlineDepth": [0] * count,
        **{name: [None] * count for name in ("nativeSymbol", "innerWindowID", "line", "column")},
    }


def _func_table(names: list[int], resources: list[int]) -> dict[str, Any]:
    count = len(names)
    return {
        "length": count,
        "name": names,
        "resource": resources,
        "isJS": [False] * count,
        "relevantForJS": [False] * count,
        **{name: [None] * count for name in ("source", "lineNumber", "columnNumber")},
    }
