"""pprof: gzip of one perftools.profiles.Profile (github.com/google/pprof, proto/profile.proto).

Samples are added up by stack, thread and core: the format has no time of a sample. Values are the number of samples
and, where the event says so, CPU time or the event's own count. Labels: pid, tid and cpu (numbers), comm, unit,
container, and what is known of a container by name: container.name, container.image.name, k8s.pod.name ... A store that
makes a series of each combination of text labels gets BOUNDED only.

A recording has names and no addresses, so a location is a function, and its mapping is the module. Only Python
functions have a source file.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from zombiescope.query.exports.interner import Interner
from zombiescope.query.exports.protobuf import integer, message, packed, text
from zombiescope.query.exports.samples import ExportSamples, ProfileTask, SampleBatch, module_of
from zombiescope.store.columns import Ints
from zombiescope.store.sample_event import SampleEvent

GZIP_LEVEL = 6
BOUNDED = frozenset({"unit", "container.name", "k8s.pod.name", "k8s.namespace.name"})
"""Text labels whose values a node has few of: no thread names and no ids."""
PYTHON = "[python]"
"""The mapping of Python functions; their file is the function's own."""


def write(samples: ExportSamples, out: BinaryIO) -> None:
    start_us, end_us = samples.selection.span
    out.write(profile(samples, samples.batches(), start_us, end_us))


def profile(
    samples: ExportSamples,
    batches: Iterable[SampleBatch],
    start_us: int,
    end_us: int,
    texts: frozenset[str] | None = None,
) -> bytes:
    """The gzipped profile of these samples of one window. `texts`: the only text labels; None for all."""
    totals = added_up(samples, batches)
    return gzip.compress(_encoded(samples, totals, start_us, end_us, texts), GZIP_LEVEL, mtime=0)


@dataclass(frozen=True, slots=True)
class Totals:
    """How often, and with what sum of periods, each (stack, task, core) was sampled; -1 is a core not known."""

    stack: Ints
    task: Ints
    cpu: Ints
    count: Ints
    period: Ints | None
    """None where the periods are not all known."""
    event: SampleEvent


def added_up(samples: ExportSamples, batches: Iterable[SampleBatch]) -> Totals:
    keys, counts, periods = ([np.zeros(0, np.int64)] for _ in range(3))
    event, known = samples.events[0], True
    for batch in batches:
        period = samples.periods(batch)
        known &= bool((period >= 0).all())
        # cpu + 1 below 2^16, tasks below 2^21, stacks below 2^26: one number that can be sorted.
        key = (samples.numbers(batch.stack) << 37) | (batch.task << 16) | (batch.cpu + 1)
        for column, more in zip((keys, counts, periods), _merged(key, samples.weights(batch), period), strict=True):
            column.append(more)
        if len(batch):
            event = samples.events[int(batch.event[0])]
    key, count, total = _merged(np.concatenate(keys), np.concatenate(counts), np.concatenate(periods))
    with_period = known and not event.weighted and len(key) > 0
    return Totals(key >> 37, (key >> 16) & 0x1F_FFFF, (key & 0xFFFF) - 1, count, total if with_period else None, event)


def _merged(key: Ints, count: Ints, period: Ints) -> tuple[Ints, Ints, Ints]:
    unique, position = np.unique(key, return_inverse=True)
    sums = [np.zeros(len(unique), np.int64) for _ in range(2)]
    np.add.at(sums[0], position, count)
    np.add.at(sums[1], position, period)
    return unique, sums[0], sums[1]


def _encoded(samples: ExportSamples, totals: Totals, start_us: int, end_us: int, texts: frozenset[str] | None) -> bytes:
    strings = Interner([""])
    places = _Places(samples, strings)
    labels = _Labels(strings, texts)
    out: list[bytes] = []
    values = [totals.count.tolist()] + ([] if totals.period is None else [totals.period.tolist()])
    kinds = [("samples", "count")] + ([] if totals.period is None else [_kind(totals.event)])
    for kind in kinds:
        out.append(message(1, _value_type(strings, *kind)))
    columns = zip(totals.stack.tolist(), totals.task.tolist(), totals.cpu.tolist(), *values, strict=True)
    for stack, task, cpu, *sums in columns:
        body = places.stack(stack) + packed(2, sums) + labels.of_task(task, samples.tasks[task]) + labels.of_cpu(cpu)
        out.append(message(2, body))
    out += places.tables()
    period_type = _value_type(strings, *kinds[-1])
    out += [text(6, value) for value in strings]
    out.append(integer(9, start_us * 1000) + integer(10, max(1, end_us - start_us) * 1000))
    out.append(message(11, period_type))
    out.append(integer(12, (samples.period_ns or 1) if totals.event.is_clock else 1))
    out.append(integer(14, strings.position(kinds[-1][0])))
    return b"".join(out)


def _kind(event: SampleEvent) -> tuple[str, str]:
    return ("cpu", "nanoseconds") if event.is_clock else (event.name.partition(":")[0], "count")


def _value_type(strings: Interner[str], kind: str, unit: str) -> bytes:
    return integer(1, strings.position(kind)) + integer(2, strings.position(unit))


class _Places:
    """Functions, locations and mappings that are in use; their numbers in the file count from 1."""

    def __init__(self, samples: ExportSamples, strings: Interner[str]) -> None:
        self._samples = samples
        self._strings = strings
        self._used: Interner[int] = Interner()
        self._stacks: dict[int, bytes] = {}

    def stack(self, number: int) -> bytes:
        """The field location_id of a sample, innermost first."""
        found = self._stacks.get(number)
        if found is None:
            functions = reversed(self._samples.functions(number))
            found = self._stacks[number] = packed(1, (self._used.position(each) + 1 for each in functions))
        return found

    def tables(self) -> list[bytes]:
        mappings: Interner[str] = Interner()
        functions, locations = [], []
        for number, position in enumerate(self._used, 1):
            function = self._samples.stacks.functions[position]
            module = module_of(function)
            is_python = function.kind == "python"
            name, file = self._strings.position(function.name), self._strings.position(module if is_python else "")
            functions.append(message(5, integer(1, number) + integer(2, name) + integer(3, name) + integer(4, file)))
            loaded = PYTHON if is_python else module
            mapping = mappings.position(loaded) + 1 if loaded else 0
            locations.append(message(4, integer(1, number) + integer(2, mapping) + message(4, integer(1, number))))
        # has_functions: nobody needs to look for symbols any more.
        named = [
            message(3, integer(1, number) + integer(5, self._strings.position(module)) + integer(7, 1))
            for number, module in enumerate(mappings, 1)
        ]
        return named + locations + functions


class _Labels:
    def __init__(self, strings: Interner[str], texts: frozenset[str] | None) -> None:
        self._strings = strings
        self._texts = texts
        self._tasks: dict[int, bytes] = {}
        self._cpus: dict[int, bytes] = {-1: b""}

    def of_task(self, number: int, task: ProfileTask) -> bytes:
        found = self._tasks.get(number)
        if found is None:
            numbers = (("pid", task.pid), ("tid", task.tid))
            texts = {
                "comm": task.comm, "unit": task.unit, "container": task.container, "gpu": task.gpus,
                **task.container_labels,
            }  # fmt: skip
            found = b"".join(self._number(key, value) for key, value in numbers if value is not None)
            found += b"".join(self._text(key, value) for key, value in texts.items() if value and self._wanted(key))
            self._tasks[number] = found
        return found

    def of_cpu(self, cpu: int) -> bytes:
        if cpu not in self._cpus:
            self._cpus[cpu] = self._number("cpu", cpu)
        return self._cpus[cpu]

    def _wanted(self, key: str) -> bool:
        return self._texts is None or key in self._texts

    def _text(self, key: str, value: str | tuple[str, ...]) -> bytes:
        written = value if isinstance(value, str) else ",".join(value)
        return message(3, integer(1, self._strings.position(key)) + integer(2, self._strings.position(written)))

    def _number(self, key: str, value: int) -> bytes:
        # The unit makes a label with the number 0 tell itself from one with an empty string.
        unit = integer(4, self._strings.position("id"))
        return message(3, integer(1, self._strings.position(key)) + integer(3, value) + unit)
