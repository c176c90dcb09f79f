"""OTLP profiles: opentelemetry.proto.profiles.v1development.ProfilesData (opentelemetry-proto 1.11). The signal is in
development, and its messages have changed between versions.

Every sample keeps its time. Samples of one stack, thread and core are one message with many times, as the
specification asks. Tables are shared by the whole file, and position 0 of each is the empty value that stands for
"none".

Each container and each systemd unit has its own resource, and the rest of the node has one: a store of profiles shows
each of them as a service. Each event of the recording has its own Profile within a resource. A file of many samples
repeats the resources for every SAMPLES_AT_ONCE: they are written one after the other, and only the tables are kept
until the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from zombiescope.query.exports.interner import Interner
from zombiescope.query.exports.protobuf import fixed64, integer, message, packed, text, varint
from zombiescope.query.exports.samples import ExportSamples, ProfileTask, SampleBatch, module_of
from zombiescope.query.stacks import Function
from zombiescope.store.sample_event import SampleEvent
from zombiescope.store.stacks import KERNEL_KINDS

SAMPLES_AT_ONCE = 2_000_000
SERVICE = "node"
"""The service.name of tasks that belong to no container and no unit."""
SCHEMA_URL = "https://opentelemetry.io/schemas/1.37.0"
"""The semantic conventions that the attributes follow."""
NO_LINK = b"\x0a\x10" + bytes(16) + b"\x12\x08" + bytes(8)
"""A Link whose ids are zero but have the lengths that strict readers expect."""
_FRAME_TYPES = {"user": "native", "vdso": "native", "python": "cpython"}
"""As the semantic conventions name them."""

Labels = tuple[tuple[str, str], ...]


def write(samples: ExportSamples, out: BinaryIO) -> None:
    for piece in pieces(samples, samples.batches(), *samples.selection.span):
        out.write(piece)


def pieces(
    samples: ExportSamples,
    batches: Iterable[SampleBatch],
    start_us: int,
    end_us: int,
    service: str = SERVICE,
    labels: Labels = (),
) -> Iterator[bytes]:
    """The bytes of one ProfilesData, which are those of an ExportProfilesServiceRequest too."""
    tables = _Tables(samples)
    owners = [_owner(task, service) for task in samples.tasks]
    places = {owner: place for place, owner in enumerate(dict.fromkeys(owners))}
    place_of = np.array([places[owner] for owner in owners], np.int64)
    resources = [message(1, _resource(samples, owner, labels)) for owner in places]
    scope = message(1, _text(1, "zombiescope") + _text(2, version("zombiescope")))
    for batch in _gathered(batches):
        of_row = place_of[batch.task]
        for place in np.unique(of_row).tolist():
            rows = batch.cut(of_row == place)
            profiles = b"".join(
                message(2, _profile(samples, tables, rows.cut(rows.event == event), event, start_us, end_us))
                for event in np.unique(rows.event).tolist()
            )
            yield message(
                1, resources[place] + message(2, scope + profiles + text(3, SCHEMA_URL)) + text(3, SCHEMA_URL)
            )
    yield message(2, tables.dictionary())


def _gathered(batches: Iterable[SampleBatch]) -> Iterator[SampleBatch]:
    waiting: SampleBatch | None = None
    for batch in batches:
        waiting = batch if waiting is None else waiting.joined(batch)
        if len(waiting) >= SAMPLES_AT_ONCE:
            yield waiting
            waiting = None
    if waiting is not None:
        yield waiting


Owner = tuple[tuple[str, str | tuple[str, ...]], ...]
"""Attributes of the resource of a task: its container, its unit, or neither."""


def _owner(task: ProfileTask, service: str) -> Owner:
    if task.container:
        known = {
            "service.name": task.service,
            "container.id": task.container,
            "k8s.pod.uid": task.pod,
            **task.container_labels,
        }
    elif task.unit:
        known = {"service.name": task.service, "zombiescope.systemd.unit": task.unit}
    else:
        known = {"service.name": service}
    return tuple((key, value) for key, value in known.items() if value)


def _resource(samples: ExportSamples, owner: Owner, labels: Labels) -> bytes:
    node = samples.node
    known: dict[str, Any] = {
        "host.name": samples.name,
        "host.arch": node.get("machine"),
        "os.type": "linux",
        "os.description": node.get("os"),
        "os.build_id": node.get("kernel"),
        **dict(labels),
        **dict(owner),
    }
    return b"".join(message(1, _text(1, key) + message(2, _any(value))) for key, value in known.items() if value)


def _profile(
    samples: ExportSamples, tables: _Tables, batch: SampleBatch, event: int, start_us: int, end_us: int
) -> bytes:
    kind = samples.events[event]
    first_us, last_us = int(batch.time_us.min()), int(batch.time_us.max())
    start_us, end_us = min(start_us, first_us), max(end_us, last_us + 1)
    identity = f"{samples.name} {kind.name} {first_us} {last_us} {len(batch)}".encode()
    return b"".join(
        [
            message(1, tables.value_type("samples", "count")),
            *_samples(samples, tables, batch),
            fixed64(3, start_us * 1000),
            integer(4, (end_us - start_us) * 1000),
            message(5, tables.value_type(*_unit(kind))),
            integer(6, (samples.period_ns or 1) if kind.is_clock else 1),
            message(7, hashlib.blake2b(identity, digest_size=16).digest()),
        ]
    )


def _unit(event: SampleEvent) -> tuple[str, str]:
    return ("cpu", "nanoseconds") if event.is_clock else (event.name, "count")


def _samples(samples: ExportSamples, tables: _Tables, batch: SampleBatch) -> Iterator[bytes]:
    """One message for each stack, thread and core; the times in it are in order."""
    stack, weight = samples.numbers(batch.stack), samples.weights(batch)
    order = np.lexsort((batch.time_us, batch.cpu, batch.task, stack))
    stack, task, cpu, weight = stack[order], batch.task[order], batch.cpu[order], weight[order]
    times = (batch.time_us[order] * 1000).astype("<u8")
    starts = np.flatnonzero(
        np.concatenate([[True], (np.diff(stack) != 0) | (np.diff(task) != 0) | (np.diff(cpu) != 0)])
    )
    ends = np.append(starts[1:], len(order))
    ones = bool((weight == 1).all())
    groups = (column.tolist() for column in (stack[starts], task[starts], cpu[starts], starts, ends))
    for stack_number, task_number, core, first, end in zip(*groups, strict=True):
        values = b"\x01" * (end - first) if ones else b"".join(map(varint, weight[first:end].tolist()))
        body = integer(1, tables.stack(stack_number)) + tables.attributes(task_number, core)
        yield message(2, body + message(4, values) + message(5, times[first:end].tobytes()))


class _Attribute(NamedTuple):
    key: int
    value: Value


class _Tables:
    """The dictionary of a file, filled as samples refer to it."""

    def __init__(self, samples: ExportSamples) -> None:
        self._samples = samples
        self._strings = Interner([""])
        self._used: Interner[int] = Interner([-1])
        self._stacks: Interner[int] = Interner([-1])
        self._attributes: Interner[_Attribute | None] = Interner([None])
        self._of_task: dict[int, tuple[int, ...]] = {}
        self._of_cpu: dict[int, tuple[int, ...]] = {-1: ()}
        self._fields: dict[tuple[int, int], bytes] = {}

    def value_type(self, kind: str, unit: str) -> bytes:
        return integer(1, self._strings.position(kind)) + integer(2, self._strings.position(unit))

    def stack(self, number: int) -> int:
        return self._stacks.position(number)

    def attributes(self, task: int, cpu: int) -> bytes:
        """The field attribute_indices of a sample."""
        found = self._fields.get((task, cpu))
        if found is None:
            if task not in self._of_task:
                self._of_task[task] = tuple(self._positions(_task_attributes(self._samples.tasks[task])))
            if cpu not in self._of_cpu:
                self._of_cpu[cpu] = tuple(self._positions({"cpu.logical_number": cpu}))
            found = self._fields[task, cpu] = packed(2, self._of_task[task] + self._of_cpu[cpu])
        return found

    def _positions(self, known: dict[str, Any]) -> Iterator[int]:
        for key, value in known.items():
            if value is not None and value != "":
                yield self._attributes.position(_Attribute(self._strings.position(key), value))

    def dictionary(self) -> bytes:
        stacks = [
            packed(1, (self._used.position(each) for each in reversed(self._samples.functions(number))))
            for number in list(self._stacks)[1:]
        ]
        mappings, names = Interner([""]), Interner([("", "")])
        locations = [b""]
        for position in list(self._used)[1:]:
            function = self._samples.stacks.functions[position]
            is_python = function.kind == "python"
            mapping = mappings.position("" if is_python else module_of(function))
            name = names.position((function.name, module_of(function) if is_python else ""))
            locations.append(self._location(function, name, mapping))
        functions = [self._function(*each) for each in names]
        files = [integer(4, self._strings.position(module)) for module in mappings]
        attributes = [b"" if each is None else _key_value(each) for each in self._attributes]
        tables = ((1, files), (2, locations), (3, functions), (4, [NO_LINK]), (6, attributes), (7, [b"", *stacks]))
        written = [message(field, value) for field, table in tables for value in table]
        return b"".join([*written, *(text(5, value) for value in self._strings)])

    def _function(self, name: str, file: str) -> bytes:
        """With its source file, where it is Python."""
        said = integer(1, self._strings.position(name))
        return said + integer(3, self._strings.position(file)) if file else said

    def _location(self, function: Function, name: int, mapping: int) -> bytes:
        kind = "kernel" if function.kind in KERNEL_KINDS else _FRAME_TYPES.get(function.kind)
        attributes = self._positions({"profile.frame.type": kind})
        return integer(1, mapping) + message(3, integer(1, name)) + packed(4, attributes)


def _task_attributes(task: ProfileTask) -> dict[str, Any]:
    """By the semantic conventions, as far as they have a name. What a resource says is not repeated."""
    return {
        "process.pid": task.pid,
        "thread.id": task.tid,
        "thread.name": task.comm,
        "zombiescope.gpu.index": tuple(map(int, task.gpus.split(","))) if task.gpus else None,
    }


def _key_value(attribute: _Attribute) -> bytes:
    return integer(1, attribute.key) + message(2, _any(attribute.value))


Value = str | int | tuple[str, ...] | tuple[int, ...]


def _any(value: Value) -> bytes:
    """An AnyValue. It is a choice of fields, so a zero is written too."""
    if isinstance(value, tuple):
        return message(5, b"".join(message(1, _any(one)) for one in value))
    return text(1, str(value)) if not isinstance(value, int) else varint(3 << 3) + varint(value)


def _text(field: int, value: str) -> bytes:
    return text(field, value) if value else b""
