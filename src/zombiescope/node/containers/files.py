"""Files of container runtimes, read as foreign bytes: bounded, never through a pipe or a device, text made printable.

Their directories belong to root, but what stands in them was chosen by whoever wrote the image, the pod or the command
line. A file over the limit is refused and not cut: half of a JSON document says nothing.

Cost: an open, a stat and a read, about 15 us for a file of 4 kB. Absence: None.
"""

from __future__ import annotations

import os
import re
import stat
from typing import Any, NamedTuple

from zombiescope.base import json as _json
from zombiescope.base.in_root import place_in_root
from zombiescope.kernel.namespaces import node_root
from zombiescope.kernel.process import printable

MAX_BYTES = 1 << 20
MAX_TEXT = 256
MAX_NAMES = 4096

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_COMPONENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$")


class Found(NamedTuple):
    """A file's content, and who owns it."""

    data: bytes
    uid: int


def read(path: str, root: str = "/") -> Found | None:
    """A regular file as the system in `root` finds it; links stay inside that system. In a pod that is the node's."""
    try:
        top = os.open(node_root(root), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return read_below(top, path)
    finally:
        os.close(top)


def read_below(directory: int, path: str, *, links: bool = True) -> Found | None:
    """The same below an open directory. Without `links` the file itself may be none."""
    try:
        place = place_in_root(os.fsencode(path), directory, links=links)
    except (OSError, ValueError):
        return None
    try:
        return _content(place)
    except OSError:
        return None
    finally:
        os.close(place)


def _content(place: int) -> Found | None:
    status = os.fstat(place)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        return None
    fd = os.open(f"/proc/self/fd/{place}", _READ)
    try:
        data = os.read(fd, MAX_BYTES + 1)
        while len(data) <= MAX_BYTES and (more := os.read(fd, MAX_BYTES + 1 - len(data))):
            data += more
    finally:
        os.close(fd)
    return Found(data, status.st_uid) if len(data) <= MAX_BYTES else None


def names_in(path: str, root: str = "/") -> list[str]:
    """The first names of a directory; none where there is none."""
    try:
        top = os.open(node_root(root), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        place = place_in_root(os.fsencode(path), top)
    except (OSError, ValueError):
        return []
    finally:
        os.close(top)
    try:
        with os.scandir(f"/proc/self/fd/{place}") as listing:
            return [entry.name for entry, _ in zip(listing, range(MAX_NAMES), strict=False)]
    except OSError:
        return []
    finally:
        os.close(place)


def document(data: bytes) -> dict[str, Any]:
    """A JSON object; empty where it is none, or is nested so deep that it was made to hurt."""
    try:
        found = _json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def part(value: dict[str, Any], *path: str) -> dict[str, Any]:
    """An object inside an object; empty where something on the way is none."""
    found: Any = value
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def text(value: object, most: int = MAX_TEXT) -> str | None:
    """A string that may be shown: printable, cut; None for anything else and for the empty one."""
    if not isinstance(value, str) or not value:
        return None
    return printable(value[:most].encode("utf-8", "surrogatepass"))[:most]


def whole(value: object) -> int | None:
    """A number that fits a column; None for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int) and abs(value) < 1 << 31 else None


def is_component(name: str) -> bool:
    """Whether a name can stand in a path without leading anywhere else."""
    return _COMPONENT.match(name) is not None and ".." not in name
