"""Every unit file of a root by name: which file counts, which names are aliases, what is masked.

As systemd since 245 does it: the first directory of the load path that has a name decides. A link to another
name inside the load path is an alias; a link out of it is a unit file that lives elsewhere ("linked"); a link
to /dev/null or an empty file masks. A link to the same name inside the load path is passed over.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field

from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files import names
from zombiescope.node.systemd.unit_files.load_path import LoadPath, unit_directories
from zombiescope.node.systemd.unit_files.syntax import Assignment

ALIAS_DEPTH_MAX = 8
_PULLS = (".wants", ".requires", ".upholds")


@dataclass(frozen=True, slots=True)
class UnitFile:
    """What the load path has under one name."""

    name: str
    path: str
    alias_of: str | None
    masked: bool
    linked: bool


@dataclass(frozen=True, slots=True)
class Pull:
    """A link in a .wants, .requires or .upholds directory: `by` pulls `unit` in."""

    unit: str
    by: str
    kind: str
    directory: str
    path: str


@dataclass(slots=True)
class UnitTree:
    root: Root
    load_path: LoadPath
    files: dict[str, UnitFile] = field(default_factory=dict)
    pulls: list[Pull] = field(default_factory=list)
    links: dict[str, dict[str, str]] = field(default_factory=dict)
    """Directory -> the links in it by name, with their targets made absolute."""
    dropin_directories: dict[str, list[str]] = field(default_factory=dict)
    """ "ssh.service.d" -> where there is one, first to last."""
    bad: set[str] = field(default_factory=set)
    """Names whose link systemctl does not accept: to themselves, to another type, in a circle."""
    odd_names: list[str] = field(default_factory=list)
    """Files with the ending of a unit and a name that systemd does not take."""
    parsed: dict[str, tuple[Assignment, ...] | None] = field(default_factory=dict)
    """Files that were read, by path; None for one that cannot be."""
    _aliases: dict[str, list[str]] = field(default_factory=dict)

    def aliases(self, name: str) -> list[str]:
        """The other names of a unit, those with files of their own only."""
        return self._aliases.get(name, [])

    def resolve(self, name: str) -> tuple[str, UnitFile] | None:
        """(the unit's own name, its file) for any of its names; None where there is no file, or only a circle."""
        for _ in range(ALIAS_DEPTH_MAX):
            file = self.files.get(name)
            if file is None:
                template = names.template_of(name)
                file = self.files.get(template) if template else None
            if file is None:
                return None
            if file.alias_of is None:
                return name, file
            instance = names.split(name)[1]
            is_template = names.is_template(file.alias_of)
            name = names.with_instance(file.alias_of, instance) if is_template and instance else file.alias_of
        return None

    def find_aliases(self) -> None:
        """To be called when the files are complete."""
        self._aliases = {}
        for name, file in self.files.items():
            resolved = self.resolve(name) if file.alias_of else None
            if file.alias_of and resolved is None and file.alias_of in self.files:
                self.bad.add(name)
            if resolved is not None and resolved[0] != name:
                self._aliases.setdefault(resolved[0], []).append(name)


def read(root: Root) -> UnitTree:
    tree = UnitTree(root, unit_directories(root))
    for directory in tree.load_path.units:
        _read_directory(tree, directory)
    tree.find_aliases()
    return tree


def _read_directory(tree: UnitTree, directory: str) -> None:
    links = tree.links.setdefault(directory, {})
    for entry in tree.root.entries(directory):
        name, path = entry.name, f"{directory}/{entry.name}"
        if name.endswith(".d"):
            tree.dropin_directories.setdefault(name, []).append(path)
        elif name.endswith(_PULLS):
            if entry.is_directory:
                _read_pulls(tree, directory, name)
        elif entry.is_directory:
            continue
        elif not names.is_valid(name):
            if names.kind_of(name) in names.TYPES:
                tree.odd_names.append(path)
        else:
            target = _target(tree.root, directory, path) if entry.is_link else None
            if target is not None:
                links[name] = target
            if name not in tree.files:
                file = _unit_file(tree, name, path, target)
                if file is None:
                    tree.bad.add(name)
                else:
                    tree.files[name] = file


def _target(root: Root, directory: str, path: str) -> str | None:
    target = root.link(path)
    return None if target is None else posixpath.normpath(posixpath.join(directory, target))


def _unit_file(tree: UnitTree, name: str, path: str, target: str | None) -> UnitFile | None:
    if target == "/dev/null" or tree.root.is_nothing(path):
        return UnitFile(name, path, None, masked=True, linked=False)
    if target is None:
        return UnitFile(name, path, None, masked=False, linked=False)
    directory, _, other = target.rpartition("/")
    if directory not in tree.load_path.aliases:
        inside = any(target.startswith(f"{place}/") for place in tree.load_path.aliases)
        if not inside:
            return UnitFile(name, path, None, masked=False, linked=True) if tree.root.is_file(path) else None
    if other == name or not _may_be_alias(name, other):
        return None
    return UnitFile(name, path, other, masked=False, linked=False)


def _may_be_alias(name: str, target: str) -> bool:
    """A name may stand for one of its own type; a template for a template, an instance for either."""
    if not names.is_valid(target) or names.kind_of(name) != names.kind_of(target):
        return False
    mine, other = names.split(name)[1], names.split(target)[1]
    if mine is None or other is None:
        return mine is None and other is None
    return other == "" or mine == other


def _read_pulls(tree: UnitTree, directory: str, name: str) -> None:
    by, _, kind = name.rpartition(".")
    for entry in tree.root.entries(f"{directory}/{name}"):
        if entry.is_link and names.is_valid(entry.name):
            tree.pulls.append(Pull(entry.name, by, kind, directory, f"{directory}/{name}/{entry.name}"))
