"""The files that are to be imported: opened, recognised, and asked for their clock before anything is decoded."""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Literal, cast

from zombiescope.base.errors import UserError
from zombiescope.imports import perf_script, proc_cgroups
from zombiescope.imports.clock import FileClock
from zombiescope.imports.stream import Progress, Stream

STDIN = "-"


class UnusableError(UserError):
    """This file cannot be imported."""


@dataclass(slots=True)
class Input:
    """One file. `clock` is what is known before it is read; None: it is known only once it is read."""

    name: str
    format: FileFormat
    file: BinaryIO
    size: int | None
    modified_us: int | None
    clock: FileClock | None = None
    host: str | None = None
    stream: Stream | None = None
    """Of what can be read only once: its first bytes are taken already."""
    damage: str | None = None
    """Why it is not whole, if that was seen before it was read."""

    @property
    def is_profile(self) -> bool:
        return self.format in PROFILES

    def open_stream(self, progress: Progress) -> Stream:
        """Raises OSError."""
        if self.stream is None:
            self.stream = Stream(self.open(), progress)
        return self.stream

    def open(self) -> BinaryIO:
        """The file from its beginning. Raises OSError."""
        if self.file.closed:
            self.file = Path(self.name).open("rb")  # noqa: SIM115  close()
        self.file.seek(0)
        return self.file

    def close(self) -> None:
        if self.file is not sys.stdin.buffer:
            self.file.close()


def expand(names: Iterable[str]) -> list[str]:
    """Folders stand for the files in them."""
    found: list[str] = []
    for name in names:
        if name != STDIN and Path(name).is_dir():
            inside = sorted(entry.path for entry in os.scandir(name) if entry.is_file() and entry.name[0] != ".")
            found += inside or [name]
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def look(name: str, wanted: FileFormat | None) -> Input:
    """Opens a file and finds out what it is. Raises UnusableError."""
    try:
        return _look(name, wanted)
    except OSError as error:
        raise UnusableError(f"{name}: {error.strerror or error}") from error


def _look(name: str, wanted: FileFormat | None) -> Input:
    if name != STDIN and Path(name).is_dir():
        raise UnusableError(f"{name} is a folder without files")  # expand() put the files of others in their place
    if name == STDIN:
        file: BinaryIO = sys.stdin.buffer
        name_for_clock, modified_us, size, seekable = "", round(time.time() * 1e6), None, False
    else:
        file = Path(name).open("rb")  # noqa: SIM115  Input.close
        facts = os.fstat(file.fileno())
        seekable = stat.S_ISREG(facts.st_mode)
        name_for_clock, modified_us = name, facts.st_mtime_ns // 1000
        size = facts.st_size if seekable else None
    stream = Stream(file, _unseen)
    found = wanted or detect(stream.head)
    if found is None:
        why = _unusable(name, stream)
        if file is not sys.stdin.buffer:
            file.close()
        raise why
    given = Input(name, found, file, size, modified_us)
    if found == "perf-data" and (stream.packed or not seekable):
        given.file, given.size = _aside(stream)
        given.damage = stream.damage
    elif not seekable:
        given.stream = stream
    given.clock = _clock(given, name_for_clock, stream)
    if seekable:
        file.close()  # there may be more files than may be open at once
    return given


def _unusable(name: str, stream: Stream) -> UnusableError:
    if stream.head:
        return UnusableError(f"{name} is in none of the formats that can be imported", "--format overrides this")
    why = "is empty" if stream.damage is None else f"cannot be used: {stream.damage} before its first byte"
    return UnusableError(f"{name} {why}")


def _unseen(_: int) -> None:
    pass


def _aside(stream: Stream) -> tuple[BinaryIO, int]:
    """A perf.data is read twice, for its clock and for its samples: one that is packed, or comes through a pipe, goes
    into a temporary file first. Raises OSError."""
    import tempfile

    file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115  Input.close
    try:
        for piece in stream:
            file.write(piece)
        file.flush()
    except OSError as error:  # of reading, the stream reports in `damage`
        with suppress(OSError):
            file.close()  # what is buffered cannot be written either
        why = f"{error.strerror} in {tempfile.gettempdir()}, where it is unpacked (TMPDIR names another place)"
        raise OSError(error.errno, why) from error
    return file, file.tell()


def _clock(given: Input, name: str, stream: Stream) -> FileClock | None:
    """What can be known before the file is decoded; sets the host."""
    if given.format == "perf-data":
        from zombiescope.imports import perf_data  # loads all that decoding needs

        given.file.seek(0)
        found = perf_data.file_clock(given.file, name)
        given.host = None if found is None else found.host
        return None if found is None else replace(found, modified_wall_us=given.modified_us)
    if given.format != "perf-script":
        given.host = _host(given.format, stream.head)
        return None
    if given.stream is None and not stream.packed:
        header, span_us = perf_script.peek(given.file, given.size or 0)
    else:
        header, span_us = perf_script.peek_head(stream.head)
    given.host = header.host
    if span_us is None and (stream.packed or given.stream is not None):
        return None  # known from the last sample only
    return script_clock(name, header, span_us, given.modified_us)


def _host(kind: FileFormat, head: bytes) -> str | None:
    """The node that a file names in its beginning."""
    text = head.decode("utf-8", "backslashreplace")
    if kind == "mpstat":
        from zombiescope.imports.mpstat import host_in
    elif kind == "kernel-log":
        from zombiescope.imports.kernel_log import host_in
    elif kind == "collapsed":
        from zombiescope.imports.collapsed import host_in
    else:
        return None
    return host_in(text)


def script_clock(
    name: str, header: perf_script.ScriptHeader, span_us: tuple[int, int] | None, modified_us: int | None
) -> FileClock:
    """The clock of a perf script text of which these are known."""
    if perf_script.is_unix(span_us):
        offset_us: int | None = 0
    else:
        offset_us = header.offset_us
    first_us, last_us = span_us if span_us is not None else (0, 0)
    return FileClock(
        name=name,
        first_us=first_us,
        last_us=last_us,
        offset_us=offset_us,
        captured_wall_us=header.captured_wall_us,
        modified_wall_us=modified_us,
        host=header.host,
    )


# --- formats ----------------------------------------------------------------------------------------------------------
# What a file is, recognised by its first bytes, whatever its name.

FileFormat = Literal[
    "perf-data", "perf-script", "collapsed", "kernel-log", "mpstat", "proc-cgroups", "cgroup-list", "docker-events"
]
FORMATS: tuple[FileFormat, ...] = (
    "perf-data", "perf-script", "collapsed", "kernel-log", "mpstat", "proc-cgroups", "cgroup-list", "docker-events",
)  # fmt: skip
PROFILES: tuple[FileFormat, ...] = ("perf-data", "perf-script", "collapsed")
NAMES: dict[FileFormat, str] = {
    "perf-data": "perf.data",
    "perf-script": "perf script text",
    "collapsed": "collapsed stacks",
    "kernel-log": "kernel log",
    "mpstat": "mpstat JSON",
    "proc-cgroups": "/proc/cgroups",
    "cgroup-list": "list of cgroup directories",
    "docker-events": "docker events",
}

PERF_DATA = (b"PERFILE2", b"2ELIFREP")
"""The magic of this byte order and of the other."""
_LOOKED_AT = 400
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_FRAME = re.compile(r"\t? +[0-9a-f]{1,16} \S|\t[0-9a-f]{1,16} \S|\t *[0-9a-f]{1,16}$|[0-9a-f]{6,16} \S[^:].*\(\S+\)$")
"""With a tab, with spaces, or at the margin where somebody took both out."""
_EVENT = re.compile(r" *\S.*\s\d+\.\d{3,9}:(?: |$)")
_PERF_HEADER = ("# captured on", "# hostname :", "# cmdline :", "# perf version :")


def detect(head: bytes) -> FileFormat | None:
    """The format of a file that begins so; None when it is none that can be imported."""
    if head.startswith(PERF_DATA):
        return "perf-data"
    # A text with more than a stray control character is none.
    if len(_BINARY.findall(head[:4096])) > len(head[:4096]) // 50:
        return None
    text = head.decode("utf-8", "backslashreplace").lstrip("\ufeff")
    if text.lstrip().startswith("{") and '"sysstat"' in text[:200]:
        return "mpstat"
    lines = [line.rstrip() for line in text.splitlines()[:_LOOKED_AT]]
    if len(head) >= 1 << 16 and len(lines) > 1:
        lines.pop()  # it may be cut
    if any(line.startswith(proc_cgroups.HEAD) for line in lines[:3]):
        return "proc-cgroups"
    if any(line.startswith(_PERF_HEADER) for line in lines):
        return "perf-script"
    return _by_votes([line for line in lines if line.strip()])


def _by_votes(lines: list[str]) -> FileFormat | None:
    """What most lines look like. A line of a log has a time as an event line does, so the log is asked first."""
    from zombiescope.imports import (
        collapsed,
        docker_events,
        kernel_log,
    )  # not for who imports perf.data: they take a while to load

    votes: dict[FileFormat, int] = dict.fromkeys(FORMATS, 0)
    for line in lines:
        if line.startswith("#"):
            votes["collapsed"] += line.startswith(("# {", "#{"))
        elif line.startswith(proc_cgroups.ROOT) and " " not in line:
            votes["cgroup-list"] += 1
        elif docker_events.is_line(line):
            votes["docker-events"] += 1
        elif kernel_log.is_line(line):
            votes["kernel-log"] += 1
        elif _FRAME.match(line) or _EVENT.match(line):
            votes["perf-script"] += 1
        elif collapsed.is_line(line):
            votes["collapsed"] += 1
    best = max(votes, key=lambda name: votes[name])
    return best if votes[best] * 4 >= len(lines) and votes[best] else None
