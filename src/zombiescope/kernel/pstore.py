"""/sys/fs/pstore: what the kernel printed last before it died, kept over the reboot by firmware or a piece of memory.

Files dmesg-BACKEND-N (efi, erst, ramoops, nvme), each a part of the log's end: a head such as "Panic#2 Part1", then
lines as the log had them. The newest part has the lowest number. systemd-pstore moves them to /var/lib/systemd/pstore
at boot, one directory for each crash; what kdump wrote stays as vmcore-dmesg.txt below /var/crash.

Cost: some files of a few kilobytes, once. Absence: no backend (most virtual machines), or no right to read (root's).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from zombiescope.base.text import printable
from zombiescope.kernel.procfile import at

PLACES = (
    ("sys/fs/pstore", "dmesg-*"), ("var/lib/systemd/pstore", "**/dmesg*"), ("var/crash", "*/vmcore-dmesg.txt"),
    ("var/crash", "*/dmesg.*"),
)  # fmt: skip
"""Directory, and which files in it."""
MOST_FILES, MOST_BYTES = 128, 1 << 20
MOST_TEXT = 300
LONGEST_US, SLACK_US = 6 * 3600 * 1_000_000, 60 * 1_000_000
_STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\](?:\[[^\]]{1,16}\])?\s?")
_WHY = (
    re.compile(r"Kernel panic - not syncing: ?(.*)"), re.compile(r"(watchdog: BUG: soft lockup.*)"),
    re.compile(r"((?:NMI )?[Ww]atchdog.*hard LOCKUP.*)"), re.compile(r"(BUG: .*)"), re.compile(r"(Oops: .*)"),
    re.compile(r"(mce: \[Hardware Error\]: Machine check events logged.*)"),
)  # fmt: skip
"""The first that is there heads it."""
_WHERE = re.compile(r"(?:RIP: [0-9a-f]{4}:|pc : )([\w.]+)\+0x")


@dataclass(frozen=True, slots=True)
class Crash:
    at_us: int
    """When its file was written, in Unix time."""
    why: str
    function: str | None
    """In which the kernel was."""
    file: str


def read(root: str = "/") -> list[Crash]:
    """The oldest first; parts that were written within a minute are one crash."""
    parts = sorted(_files(root), key=lambda one: (one[0], one[1].name))
    crashes: list[Crash] = []
    while parts:
        first_s = parts[0][0]
        same = [path for at_s, path in parts if at_s - first_s <= 60]
        parts = [part for part in parts if part[0] - first_s > 60]
        lines = [line for path in same for line in _lines(path)]
        found = _crash(lines, first_s, same)
        if found is not None:
            crashes.append(found)
    return crashes


def _files(root: str) -> list[tuple[float, Path]]:
    found: list[tuple[float, Path]] = []
    for directory, pattern in PLACES:
        try:
            paths = sorted(Path(at(root, directory)).glob(pattern))[:MOST_FILES]
            found += [(path.stat().st_mtime, path) for path in paths if path.is_file()]
        except OSError:
            continue
    return found[:MOST_FILES]


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES)
    except OSError:
        return []
    return [_STAMP.sub("", line) for line in data.decode("utf-8", "replace").splitlines()]


def _crash(lines: list[str], at_s: float, files: list[Path]) -> Crash | None:
    """None for what is no crash: pstore also keeps the log of an orderly reboot, where it is told to."""
    why = next((found[1] for form in _WHY for line in lines if (found := form.search(line))), None)
    if why is None:
        return None
    where = next((found[1] for line in lines if (found := _WHERE.search(line))), None)
    return Crash(int(at_s * 1e6), printable(why.strip())[:MOST_TEXT] or "panic", where, str(files[0]))


def before_this_boot(boot_us: int, root: str = "/") -> list[Crash]:
    """Those that ended the boot before: a dump of terabytes may take hours."""
    return [one for one in read(root) if boot_us - LONGEST_US <= one.at_us <= boot_us + SLACK_US]
