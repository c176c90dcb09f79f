"""Whether a recording may be acted on: whose it is, and whether it is of this node as it runs now.

A plan names units, containers and processes, and root carries it out. So whoever can write the recording chooses what
root does. Every boot id is readable by everybody; what is not forged so easily is who owns the files. A recording is
acted on only if

    its directory, all above it and every file in it belong to root, to the recorder's user (`zombiescope`), or to the
    user behind sudo, and nobody else may write there
    it was written in this boot, by this kernel
    it ends at most OLDEST_S ago, and the incident at most OLDEST_INCIDENT_S before

Anything else is shown as a plan and not applied.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from zombiescope.base.safe_files import GROUP
from zombiescope.base.time import SECOND_US
from zombiescope.kernel import host
from zombiescope.store.object_store import is_address
from zombiescope.store.reader import Recording

OLDEST_S = 3600
"""Of the last record: a recorder writes every second, and one that ended an hour ago does not know what runs now."""
OLDEST_INCIDENT_S = 24 * 3600
"""Of the incident's end: a leak from yesterday may still cost today; last week's unit may be somebody else's now."""
MOST_FILES = 100_000
USER = GROUP
"""The packaged unit's user has the name of its group."""


def is_this_boot(recording: Recording) -> bool:
    """Whether it was written in the boot that runs here: then this machine may be asked what is known only on it."""
    boot = host.read().boot_id
    return boot is not None and recording.boot_at(recording.end_us) == boot


def why_not(recording: Recording, incident_to_us: int | None = None) -> str | None:
    """Why root does not act on it; None where it may."""
    return next(_reasons(recording, incident_to_us), None)


def _reasons(recording: Recording, incident_to_us: int | None) -> Iterator[str]:
    if not is_this_boot(recording):
        yield f"the recording is of {recording.name}, not of this machine as it runs now"
        return
    here, kernel = host.read(), recording.node.get("kernel")
    if kernel != here.release:
        yield f"the recording is of kernel {kernel}, and this machine runs {here.release}"
    now_us = time.time_ns() // 1000
    for what, end_us, most_s in (
        ("recording", recording.end_us, OLDEST_S),
        ("incident", incident_to_us, OLDEST_INCIDENT_S),
    ):
        if end_us is not None and end_us > now_us + 60 * SECOND_US:
            yield f"the {what} ends in the future"
        elif end_us is not None and now_us - end_us > most_s * SECOND_US:
            yield f"the {what} ended more than {most_s // 3600} h ago: what runs now may be something else"
    if is_address(recording.store.place):
        yield "the recording is in an object store, where others may write"
    else:
        yield from _strangers(Path(recording.store.place), recording.prefix)


def _strangers(place: Path, prefix: str) -> Iterator[str]:
    trusted = owners()
    try:
        named = place.absolute()
        links = (
            (one, one.lstat()) for one in (named, *named.parents)
        )  # whoever has a link can turn it round meanwhile
        yield from _refused(((one, status) for one, status in links if stat.S_ISLNK(status.st_mode)), trusted)
        real = place.resolve(strict=True)
        own = real / prefix.strip("/") if prefix.strip("/") else real
        if own.is_dir():
            yield from _refused(_files(own), trusted)
        yield from _refused(((own, own.lstat()), *((above, above.lstat()) for above in own.parents)), trusted)
    except OSError as error:
        yield f"{error.filename or place}: {error.strerror}"


def _refused(found: Iterable[tuple[Path, os.stat_result]], trusted: set[int]) -> Iterator[str]:
    for path, status in found:
        if status.st_uid not in trusted:
            yield f"{path} belongs to {_name(status.st_uid)}: a plan of it would be that user's word"
        elif (
            not stat.S_ISLNK(status.st_mode)
            and status.st_mode & stat.S_IWOTH
            and not (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX)
        ):
            yield f"{path} can be written by every user: a plan of it would be anybody's word"


def _files(own: Path) -> Iterator[tuple[Path, os.stat_result]]:
    pending, number = [own], 0
    while pending:
        with os.scandir(pending.pop()) as listing:
            entries = list(islice(listing, MOST_FILES + 1 - number))
        number += len(entries)
        if number > MOST_FILES:
            raise OSError(0, f"more than {MOST_FILES:,} files, whose owners were not looked at", str(own))
        yield from ((Path(entry.path), entry.stat(follow_symlinks=False)) for entry in entries)
        pending += [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]


def owners() -> set[int]:
    """Users whose recordings root acts on."""
    found = {0, os.geteuid()}
    with contextlib.suppress(KeyError):
        found.add(pwd.getpwnam(USER).pw_uid)
    behind = os.environ.get("SUDO_UID") or os.environ.get("PKEXEC_UID") or ""
    if behind.isdecimal() and len(behind) < 10:
        found.add(int(behind))
    return found


def _name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
