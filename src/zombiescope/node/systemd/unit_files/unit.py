"""One unit with its drop-ins: every assignment in the order in which systemd applies them."""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.node.systemd.unit_files import names, syntax
from zombiescope.node.systemd.unit_files.load_path import conf_files
from zombiescope.node.systemd.unit_files.syntax import Assignment
from zombiescope.node.systemd.unit_files.tree import UnitTree


@dataclass(frozen=True, slots=True)
class Unit:
    name: str
    file: str
    dropins: tuple[str, ...]
    assignments: tuple[Assignment, ...]

    @property
    def kind(self) -> str:
        return names.kind_of(self.name)

    def last(self, section: str, key: str) -> Assignment | None:
        """The assignment that counts for a setting that holds one value."""
        found = self.assigned(section, key)
        return found[-1] if found else None

    def assigned(self, section: str, key: str) -> list[Assignment]:
        return [item for item in self.assignments if item.key == key and item.section == section]

    def listed(self, section: str, key: str) -> list[Assignment]:
        """The assignments that count for a setting that holds a list: an empty one takes back those before it."""
        found = self.assigned(section, key)
        taken_back = max((at for at, item in enumerate(found, 1) if not item.value), default=0)
        return found[taken_back:]

    def words(self, section: str, key: str) -> list[str]:
        return [word for item in self.listed(section, key) for word in syntax.words(item.value)]


def load(tree: UnitTree, name: str) -> Unit | None:
    """None where there is no file of that name, or it is masked."""
    resolved = tree.resolve(name)
    if resolved is None or resolved[1].masked:
        return None
    own, file = resolved
    assignments = _assignments(tree, file.path)
    if assignments is None:
        return None
    dropins = dropin_files(tree, own)
    more = [item for path in dropins for item in _assignments(tree, path) or ()]
    return Unit(own, file.path, tuple(dropins), (*assignments, *more) if more else assignments)


def _assignments(tree: UnitTree, path: str) -> tuple[Assignment, ...] | None:
    """Of one file; None where it cannot be read. Kept: instances of a template have the same one."""
    if path not in tree.parsed:
        data = tree.root.read(path)
        tree.parsed[path] = None if data is None else tuple(syntax.parse(data, path))
    return tree.parsed[path]


def dropin_files(tree: UnitTree, name: str) -> list[str]:
    """By file name; of two with one name that in the more specific directory counts."""
    known = tree.dropin_directories
    directories: list[str] = []
    for spelling in (name, *tree.aliases(name)):
        wanted = [f"{other}.d" for other in names.sharing(spelling)]
        if any(each in known for each in wanted):
            for place in tree.load_path.units:
                paths = (f"{place}/{each}" for each in wanted if f"{place}/{each}" in known.get(each, ()))
                directories += [path for path in paths if path not in directories]
    directories += known.get(f"{names.kind_of(name)}.d", [])
    # systemd names a drop-in by the path without links, unlike the unit file itself
    found = (tree.root.resolve(directory) for directory in directories)
    return conf_files(tree.root, [path for path in found if path is not None], ".conf") if directories else []
