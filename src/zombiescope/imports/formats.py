"""What a file is, recognised by its first bytes, whatever its name."""

from __future__ import annotations

import re
from typing import Literal

from zombiescope.imports import proc_cgroups

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
