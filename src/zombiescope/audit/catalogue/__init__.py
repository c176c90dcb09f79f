"""The data of the audit: default agents, kernels with an expensive path, and what identifies a platform.

One entry a line, each with its reason and its source, in agents.toml, kernels.toml and platforms.toml beside this
file. Entries of one's own go into /etc/zombiescope/agents.d/*.toml of the audited root, or a file that is named on
the command line; an entry with the same unit (or id) takes the place of ours. No code is needed for an entry.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from zombiescope.base.errors import UserError
from zombiescope.node.systemd.root import Root

OWN_ENTRIES = "/etc/zombiescope/agents.d"
MOST_BYTES, MOST_LINE = 128 << 10, 4096
"""Of one file. An image brings its own entries along, and TOML's reader needs the square of a line's dots."""


class CatalogueError(UserError):
    """An entry that cannot be used: which file, which entry, what is wrong with it."""

    def __init__(self, what: str, fix: str = "docs/catalogue.md shows an entry") -> None:
        super().__init__(what, fix)


@dataclass(frozen=True, slots=True)
class Agent:
    unit: str
    name: str
    source: str
    why: str
    belongs_to: str = ""
    """The platform whose nodes need it; "" where it is listed for another reason."""
    kind: str = "orchestrator"
    """Of that platform: orchestrator or cloud."""
    not_on: str = ""
    """A platform on which it has nothing to do."""
    endless_by_design: bool = False
    """Its makers want it to be restarted for ever."""
    terminal_status: tuple[int, ...] = ()
    supervises: str = ""
    """What it starts again and again by itself, so that systemd counts no restart."""
    """Exit statuses with which it says that restarting it is of no use."""
    images: tuple[str, ...] = ()
    """Images of the containers that this unit runs, without registry host docker.io and without tag."""


@dataclass(frozen=True, slots=True)
class Kernel:
    id: str
    before: str
    what: str
    why: str
    source: str
    since: str = ""
    hierarchy: int = 0
    """1: only where memory is accounted on cgroup v1; 0: on both."""
    severity: str = "warning"

    @property
    def upgrade(self) -> str:
        """The fix, as a line for the reader."""
        return f"# upgrade to kernel {self.before} or later, unless your distribution has backported it ({self.source})"

    def covers(self, release: str) -> bool:
        version = number_of(release)
        return bool(version) and version < number_of(self.before) and version >= number_of(self.since)


@dataclass(frozen=True, slots=True)
class HierarchyDefault:
    os: str
    hierarchy: int
    source: str
    before: str = ""
    """The release from which this no longer holds; "" for every release."""

    def applies(self, os: str, version: str) -> bool:
        return os == self.os and (not self.before or number_of(version) < number_of(self.before))


@dataclass(frozen=True, slots=True)
class Hint:
    platform: str
    source: str
    kind: str = "orchestrator"
    unit: str = ""
    path: str = ""
    holds: str = ""
    """A pattern that a line of the file at `path` has to match."""
    kernel: str = ""
    """A pattern of kernel releases that are built for this cloud."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    agents: tuple[Agent, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    hierarchies: tuple[HierarchyDefault, ...] = ()
    platforms: tuple[Hint, ...] = ()

    def agent(self, unit: str) -> Agent | None:
        return next((agent for agent in self.agents if agent.unit == unit), None)

    def agent_of_image(self, image: str) -> Agent | None:
        """The agent whose unit runs containers of an image."""
        name = plain_image(image)
        return next((agent for agent in self.agents if name in agent.images), None)


_KINDS: dict[str, type[Agent] | type[Kernel] | type[HierarchyDefault] | type[Hint]] = {
    "agents": Agent,
    "kernels": Kernel,
    "hierarchies": HierarchyDefault,
    "platforms": Hint,
}
_PATTERNS = ("holds", "kernel")
_CHOICES = {"severity": ("info", "warning", "critical"), "kind": ("orchestrator", "cloud"), "hierarchy": (0, 1, 2)}


def plain_image(image: str) -> str:
    """amazon/amazon-ecs-agent of docker.io/amazon/amazon-ecs-agent:latest."""
    head, slash, last = image.partition("@")[0].rpartition("/")
    return (head + slash + last.partition(":")[0]).removeprefix("docker.io/").removeprefix("library/")


def number_of(version: str) -> tuple[int, ...]:
    """(5, 4) of 5.4.0-1024-aws, (20, 4) of 20.04; () of nothing."""
    return tuple(int(part) for part in re.match(r"(?:\d+\.?){0,2}", version)[0].split(".") if part)  # type: ignore[index]


@cache
def shipped() -> Catalogue:
    found = Catalogue()
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        found = merge(found, parse(path.read_bytes(), path.name))
    return found


def load(root: Root, extra: Iterable[Path] = ()) -> Catalogue:
    """Ours, those of the root, and those of the files named. CatalogueError, OSError."""
    found = shipped()
    for name in root.names(OWN_ENTRIES):
        if name.endswith(".toml"):
            path = f"{OWN_ENTRIES}/{name}"
            found = merge(found, parse(root.read(path) or b"", path))
    for file in extra:
        found = merge(found, parse(file.read_bytes(), str(file)))
    return found


def parse(data: bytes, name: str) -> Catalogue:
    if len(data) > MOST_BYTES or max(map(len, data.splitlines()), default=0) > MOST_LINE:
        most = f"at most {MOST_BYTES >> 10} kB, and {MOST_LINE:,} bytes in a line"
        raise CatalogueError(f"{name} is too large", most)
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogueError(f"{name} is not TOML: {error}") from error
    except RecursionError:
        raise CatalogueError(f"{name} is nested too deeply", "an entry is one line in braces") from None
    strange = sorted(set(document) - set(_KINDS))
    if strange:
        raise CatalogueError(f"{name}: no such list: {', '.join(strange)}", f"there are {', '.join(_KINDS)}")
    found = {kind: _entries(document.get(kind, []), kind, name) for kind in _KINDS}
    return Catalogue(**found)


def _entries(rows: Any, kind: str, name: str) -> tuple[Any, ...]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CatalogueError(f"{name}: {kind} is not a list of entries, each in braces on a separate line")
    return tuple(_entry(row, kind, f"{name}: {kind}, entry {number}") for number, row in enumerate(rows, 1))


def _entry(row: dict[str, Any], kind: str, where: str) -> Any:
    known = {field.name: field for field in fields(_KINDS[kind])}
    missing = [name for name, field in known.items() if field.default is MISSING and name not in row]
    for key, value in row.items():
        if key not in known:
            raise CatalogueError(f"{where}: no such key: {key}", f"there are {', '.join(known)}")
        wanted = {"bool": bool, "int": int, "str": str}.get(str(known[key].type), list)
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise CatalogueError(f"{where}: {key} has to be a {wanted.__name__}")
        if key in _CHOICES and value not in _CHOICES[key]:
            raise CatalogueError(f"{where}: {key} has to be one of {', '.join(map(str, _CHOICES[key]))}")
        if key in _PATTERNS:
            _check_pattern(str(value), f"{where}: {key}")
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    if missing:
        raise CatalogueError(f"{where}: it lacks {', '.join(missing)}")
    return _KINDS[kind](**values)


def _check_pattern(value: str, where: str) -> None:
    try:
        re.compile(value)
    except re.error as error:
        raise CatalogueError(f"{where} is not a pattern: {error}") from error


def merge(old: Catalogue, new: Catalogue) -> Catalogue:
    """Both; of two entries for one thing the new one."""
    units = {agent.unit for agent in new.agents}
    ids = {kernel.id for kernel in new.kernels}
    return Catalogue(
        agents=(*(agent for agent in old.agents if agent.unit not in units), *new.agents),
        kernels=(*(kernel for kernel in old.kernels if kernel.id not in ids), *new.kernels),
        hierarchies=(*new.hierarchies, *old.hierarchies),
        platforms=(*new.platforms, *old.platforms),
    )
