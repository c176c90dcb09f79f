"""Closed log segments become immutable Parquet parts.

    python -m zombiescope.store.compact NODE_DIR [SEGMENT...]

Runs beside the recorder as a process of its own, at the lowest CPU and disk priority, because importing
pyarrow and writing a file costs more than the recorder itself. Without named segments it takes all that
nobody writes to any more.

A part holds at most a quarter of an hour, one boot and one date, and is cut earlier when it holds very many
samples or stacks: that bounds memory. Files are written aside, synced and renamed, the manifest last; then
the segments are deleted. Interrupted anywhere, the next run removes what is left over and starts again. A
segment whose header is unreadable is left to retention, and so is one with tables that only a newer version knows:
that version compacts it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from zombiescope.base import helper as _helper
from zombiescope.base import safe_files
from zombiescope.base.confinement import confine
from zombiescope.base.errors import UserError
from zombiescope.base.text import printable
from zombiescope.store import layout, steps
from zombiescope.store.layout import Manifest, Span
from zombiescope.store.locate import is_locked
from zombiescope.store.merge import PartMerger
from zombiescope.store.part import Damage
from zombiescope.store.segment_part import SegmentPart, bound
from zombiescope.store.store import Directory

PART_US = 15 * 60 * 1_000_000
PART_SAMPLES = 4_000_000
PART_STACKS = 200_000

_SETTLE_US = 10_000_000
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_IOPRIO_IDLE = 3 << 13


class BusyError(UserError):
    """Another process is compacting the same recording."""


@dataclass(frozen=True, slots=True)
class Compacted:
    parts: tuple[Manifest, ...]
    segments: int
    left: tuple[Damage, ...] = ()
    """Segments that stay as they are, and why."""


def compact(node_dir: Path, names: Sequence[str] | None = None) -> Compacted:
    """Compacts the named segments (file names in log/), or all that are closed. Raises UserError, OSError."""
    with _only_one(node_dir):
        store = Directory(node_dir)
        found = layout.segment_files(store.entries(layout.LOG_FOLDER))
        manifests, unreadable = layout.read_manifests(store)
        _clean_up(node_dir, store, manifests, [name for name, _ in unreadable])
        done = {name for manifest in manifests for name in manifest.segments}
        chosen = set(names) if names is not None else _closed(node_dir, found)
        parts = [
            SegmentPart(store, "", segment, hold=False)
            for segment in found
            if Path(segment.name).name in chosen and Path(segment.name).name not in done
        ]
        readable = [part for part in parts if part.header]
        left = list(_not_ours(readable))
        strange = {entry.file for entry in left}
        readable = [part for part in readable if part.name not in strange]
        bound(readable)
        for part in readable:
            part.growing = False
        made = list(_write_parts(node_dir, readable))
        return Compacted(tuple(made), len(readable), tuple(left))


def _not_ours(segments: Sequence[SegmentPart]) -> Iterator[Damage]:
    """Those that only a newer version can make Parquet of without losing anything."""
    for segment in segments:
        why = segment.of_a_newer_version()
        segment.forget()
        if why is not None:
            yield Damage(segment.name, why)


@contextlib.contextmanager
def _only_one(node_dir: Path) -> Iterator[None]:
    with os.fdopen(safe_files.open_lock(node_dir / "compact.lock"), "r+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(
                f"{node_dir} is being compacted by another process", "it is done when that process ends"
            ) from error
        yield


def _closed(node_dir: Path, found: Sequence[layout.SegmentFile]) -> set[str]:
    """All but the one written to last, if a recorder runs; a clock step can give it any name."""
    names = {Path(segment.name).name for segment in found}
    if names and is_locked(node_dir) is not False:
        names.remove(max(names, key=lambda name: (node_dir / layout.LOG_FOLDER / name).stat().st_mtime_ns))
    return names


def _clean_up(node_dir: Path, store: Directory, manifests: Sequence[Manifest], unreadable: Sequence[str]) -> None:
    """What a run that was interrupted left: files of no part, and segments that already are Parquet. A manifest that
    cannot be read may be a newer version's: its files stay."""
    for name in layout.uncommitted(store.entries(""), manifests, unreadable):
        safe_files.remove(node_dir / name)
    for manifest in manifests:
        _delete_segments(node_dir, manifest)


def _delete_segments(node_dir: Path, manifest: Manifest) -> None:
    for name in manifest.segments:
        safe_files.remove(node_dir / layout.LOG_FOLDER / name)


def _write_parts(node_dir: Path, segments: Sequence[SegmentPart]) -> Iterator[Manifest]:
    waiting = list(segments)
    while waiting:
        building = _Building(node_dir, waiting[0])
        try:
            while waiting and building.has_room_for(waiting[0]):
                segment = waiting.pop(0)
                building.add(segment, waiting[0] if waiting else None)
            manifest = building.commit()
        except BaseException:
            building.abandon()
            raise
        _delete_segments(node_dir, manifest)
        yield manifest
        del building
        _give_memory_back()


def _give_memory_back() -> None:
    """Without it each part adds to what malloc keeps: 310 MB after three parts of 96 cores instead of 250."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl does not
    if trim is not None:
        trim(0)


class _Building:
    """A part that is being written."""

    def __init__(self, node_dir: Path, first: SegmentPart) -> None:
        self._node_dir = node_dir
        self._first = first
        self._folder = node_dir / layout.date_folder(first.start_us)
        safe_files.make_directory(self._folder)
        self._part = f"{first.header.get('node', node_dir.name)}-{first.start_us}"
        self._aside = partial(_aside, self._folder, first.start_us)  # a method of self would keep self alive
        self._merger = PartMerger(self._part, self._aside)
        self._segments: list[str] = []
        self._spans: list[Span] = []
        self._damage: list[str] = []

    def has_room_for(self, segment: SegmentPart) -> bool:
        first = self._first
        return segment is first or (
            segment.boot == first.boot
            and segment.start_us - first.start_us < PART_US
            and layout.date_folder(segment.start_us) == layout.date_folder(first.start_us)
            and self._merger.samples < PART_SAMPLES
            and self._merger.stacks < PART_STACKS
        )

    def add(self, segment: SegmentPart, following: SegmentPart | None) -> None:
        self._merger.add(segment, settled_us=following.start_us - _SETTLE_US if following else None)
        self._segments.append(Path(segment.name).name)
        self._spans += segment.spans()
        self._damage += [f"{entry.file}: {entry.what}" for entry in segment.damage]
        segment.forget()

    def commit(self) -> Manifest:
        facts, ids = self._merger.finish()
        spans = _joined(self._spans)
        from_us = self._first.start_us
        manifest = Manifest(
            part=self._part,
            from_us=from_us,
            to_us=max([from_us, *(span.to_us for span in spans)]),
            boot=self._first.boot,
            segments=tuple(self._segments),
            tables=facts,
            ids=ids,
            spans=tuple(spans),
            damage=tuple(self._damage),
        )
        for table in facts:
            self._aside(table).rename(self._node_dir / manifest.file(table))
        layout.sync_folder(self._folder)
        layout.write_synced(self._node_dir / manifest.name, manifest.to_json())
        return manifest

    def abandon(self) -> None:
        self._merger.abandon()


def _aside(folder: Path, start_us: int, table: str) -> Path:
    return folder / f"{table}-{start_us:016d}.tmp"


def _joined(spans: Sequence[Span]) -> list[Span]:
    """Spans of one run without a hole between them as one."""
    joined: list[Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last and last.run_us == span.run_us and 0 <= span.from_us - last.to_us <= 3_000_000:
            joined[-1] = Span(last.from_us, span.to_us, span.run_us, span.boot, last.first_seq, span.last_seq,
                              last.from_monotonic_ns, span.to_monotonic_ns)  # fmt: skip
        else:
            joined.append(span)
    return joined


def _step_back() -> None:
    """The lowest CPU priority and the idle class of the disk scheduler."""
    os.nice(19)
    number = _IOPRIO_SET.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, 1, 0, _IOPRIO_IDLE)


def _beat(what: str) -> None:
    """To the recorder that started us."""
    with contextlib.suppress(OSError):
        os.write(1, json.dumps({"beat": True, "stage": what}).encode() + b"\n")


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        print("usage: python -m zombiescope.store.compact NODE_DIR [SEGMENT...]", file=sys.stderr)  # noqa: T201
        return 2
    is_child = _helper.begin()
    _step_back()
    confine()
    if is_child:
        steps.tell(_beat)
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(1)
    names = [Path(name).name for name in arguments[1:]] or None
    try:
        done = compact(Path(arguments[0]), names)
    except (UserError, OSError) as error:
        print(printable(f"zombiescope compact: {error}"), file=sys.stderr)  # noqa: T201
        return 1
    if done.left:
        why = f"{done.left[0].file} {done.left[0].what}"
        more = f" (and {len(done.left) - 1} more)" if len(done.left) > 1 else ""
        print(printable(f"zombiescope compact: left as it is: {why}{more}"), file=sys.stderr)  # noqa: T201
    used = resource.getrusage(resource.RUSAGE_SELF)
    report = {
        "parts": [part.part for part in done.parts],
        "segments": done.segments,
        "left": [f"{entry.file} {entry.what}" for entry in done.left],
        "samples": sum(part.tables["samples"].rows for part in done.parts if "samples" in part.tables),
        "bytes": sum(facts.bytes for part in done.parts for facts in part.tables.values()),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 3),
        "max_rss_bytes": used.ru_maxrss * 1024,
    }
    print(json.dumps(report))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
