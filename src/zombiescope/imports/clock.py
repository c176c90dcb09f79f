"""How the clock of a file becomes Unix time.

perf stamps its records with a clock that starts at boot (or with the one that `perf record -k` names). What ties it to
the wall, most trusted first:

    1. the file itself: both clocks read at one moment (perf record -k, HEADER_CLOCK_DATA)
    2. the caller: the time of the first sample (--start)
    3. the text's header ("# captured on", which is when perf closed its file, in local time)
    4. the file's name: `perf record --switch-output` names a file after the moment it was closed
       (perf.data.YYYYMMDDhhmmsscc); a date within a name (perf-host-20260102-03-04-05-120s.data) is the moment before
       perf was started. Both are local time.
    5. the file's modification time: its last record was written then, unless the file was copied without -p

Files of one host whose clocks run on are of one boot, and one boot has one offset: what a name or a modification time
says is late by how long perf took to write, so the median of all is taken, and the files keep their distances.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

Source = Literal["file", "start", "captured", "name", "mtime", "none"]

_CLOSED_AT = re.compile(r"\.(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$")
_STARTED_AT = re.compile(r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)[-_T](\d\d)[-:.]?(\d\d)[-:.]?(\d\d)(?!\d)")
# Offsets that differ by more than this are of two boots: a reboot starts the clock anew.
MAX_DRIFT_US = 600_000_000

_SENTENCES: dict[Source, str] = {
    "file": "times: from the file, which holds both clocks (perf record -k)",
    "start": "times: from the time of the first sample as given with --start",
    "captured": "times: from the line `captured on` of the header, taken as local time of this machine and as the time "
    "of the last sample; right to a second or two",
    "name": "times: from the date in the file name, taken as local time of this machine; may be off by a second or two",
    "mtime": "times: from the modification time of the file (of a pipe: its end), taken as that of its last record; "
    "wrong if the file was copied without keeping it (then give --start)",
    "none": "times: unknown; the file's own clock is shown as if it had started in 1970 (give --start)",
}


@dataclass(frozen=True, slots=True)
class FileClock:
    """What is known of one file's clock. Times without `wall` are in the file's own clock."""

    name: str
    first_us: int | None = None
    """Time of the first sample; None: no sample."""
    last_us: int | None = None
    """Time of the last record."""
    offset_us: int | None = None
    """Unix time minus file clock, when the file itself says so."""
    modified_wall_us: int | None = None
    """Modification time; for a pipe, when it ended."""
    host: str | None = None
    captured_wall_us: int | None = None
    """When perf closed the file, as the header of a text says."""


Clock = FileClock


def offset_us(files: Sequence[FileClock], start_wall_us: int | None = None) -> list[int]:
    """Unix time minus file clock, of each file; `start_wall_us` is the time of the earliest sample."""
    return [offset for offset, _ in _offsets(files, start_wall_us)]


def sentences(files: Sequence[FileClock], start_wall_us: int | None = None) -> list[str]:
    """How that was found, for outcome.note()."""
    used = {source for _, source in _offsets(files, start_wall_us)}
    return [sentence for source, sentence in _SENTENCES.items() if source in used]


def _offsets(files: Sequence[FileClock], start_wall_us: int | None) -> list[tuple[int, Source]]:
    estimates = [_estimate(file) for file in files]
    found: list[tuple[int, Source]] = [(0, "none")] * len(files)
    for boot in _boots(files, estimates):
        common = _common([estimates[at] for at in boot])
        for at in boot:
            found[at] = common
    if start_wall_us is None:
        return found
    return _from_start(files, found, start_wall_us)


def _from_start(
    files: Sequence[FileClock], found: list[tuple[int, Source]], start_wall_us: int
) -> list[tuple[int, Source]]:
    """The earliest sample of all is at `start_wall_us`; the others keep their distance. The file's own word stays."""
    if any(source == "file" for _, source in found):
        return found
    firsts = [
        file.first_us + offset for file, (offset, _) in zip(files, found, strict=True) if file.first_us is not None
    ]
    move_us = start_wall_us - min(firsts, default=0)
    return [(offset + move_us, "start") for offset, _ in found]


def _estimate(file: FileClock) -> tuple[int, Source]:
    if file.offset_us is not None:
        return file.offset_us, "file"
    if file.captured_wall_us is not None and file.last_us is not None:
        return file.captured_wall_us - file.last_us, "captured"
    named = named_time(file.name)
    if named is not None:
        wall_us, is_end = named
        own_us = file.last_us if is_end else file.first_us
        if own_us is not None:
            return wall_us - own_us, "name"
    if file.modified_wall_us is not None and file.last_us is not None:
        return file.modified_wall_us - file.last_us, "mtime"
    return 0, "none"


def _boots(files: Sequence[FileClock], estimates: Sequence[tuple[int, Source]]) -> Iterator[list[int]]:
    """Files that share a clock, as positions."""
    hosts: dict[str | None, list[int]] = {}
    for at, file in enumerate(files):
        hosts.setdefault(file.host, []).append(at)
    for members in hosts.values():
        members.sort(key=lambda at: estimates[at][0])
        boot: list[int] = []
        for at in members:
            if boot and not _same_boot(estimates[boot[-1]], estimates[at]):
                yield boot
                boot = []
            boot.append(at)
        yield boot


def _same_boot(one: tuple[int, Source], other: tuple[int, Source]) -> bool:
    """A reboot starts the clock anew, so the offset jumps by as much as the host was up before."""
    return abs(one[0] - other[0]) <= MAX_DRIFT_US


def _common(estimates: Sequence[tuple[int, Source]]) -> tuple[int, Source]:
    order: tuple[Source, ...] = ("file", "captured", "name", "mtime", "none")
    best = min((source for _, source in estimates), key=order.index)
    offsets = sorted(offset for offset, source in estimates if source == best)
    return offsets[len(offsets) // 2], best


def named_time(name: str) -> tuple[int, bool] | None:
    """(Unix time in microseconds, whether it is the end of the file) of a date in a file name, or None."""
    base = name.rpartition("/")[2]
    closed = _CLOSED_AT.search(base)
    if closed is not None:
        *fields, hundredths = (int(group) for group in closed.groups())
        at = _local(fields)
        return None if at is None else (at * 1_000_000 + hundredths * 10_000, True)
    started = _STARTED_AT.search(base)
    if started is None:
        return None
    at = _local([int(group) for group in started.groups()])
    return None if at is None else (at * 1_000_000, False)


def _local(fields: Sequence[int]) -> int | None:
    year, month, day, hour, minute, second = fields
    if not (1990 <= year < 2200 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    try:
        return int(time.mktime((year, month, day, hour, minute, second, 0, 0, -1)))
    except (OverflowError, ValueError):
        return None
