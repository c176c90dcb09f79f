"""Whether a unit is enabled, in the words of `systemctl is-enabled`.

enabled: a link below /etc/systemd/system names it, in a .wants, .requires or .upholds directory or as one of the
aliases of its [Install] section. Links that the vendor put below /usr pull a unit in as well but do not make it
enabled; such a unit is static, or disabled when it could be enabled too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from zombiescope.node.systemd.unit_files import names
from zombiescope.node.systemd.unit_files.load_path import GENERATED, PERSISTENT, TRANSIENT
from zombiescope.node.systemd.unit_files.tree import UnitFile, UnitTree
from zombiescope.node.systemd.unit_files.unit import Unit, load

_RULES = ("WantedBy", "RequiredBy", "UpheldBy", "Alias")


@dataclass(frozen=True, slots=True)
class Install:
    aliases: frozenset[str] = frozenset()
    default_instance: str | None = None
    has_rules: bool = False
    has_also: bool = False

    def knows(self, unit: str, name: str) -> bool:
        """Whether `systemctl enable` would make a link of this name for the unit."""
        if name == unit or name in self.aliases:
            return True
        default = self.default_instance
        return default is not None and names.is_template(unit) and name == names.with_instance(unit, default)


def install_of(unit: Unit) -> Install:
    default = unit.last("Install", "DefaultInstance")
    return Install(
        aliases=frozenset(unit.words("Install", "Alias")),
        default_instance=default.value if default and default.value else None,
        has_rules=any(unit.words("Install", key) for key in _RULES),
        has_also=bool(unit.words("Install", "Also")),
    )


@dataclass(slots=True)
class LinkIndex:
    """The links of each directory by the unit that they name, so that ten thousand units cost ten thousand looks."""

    by_name: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Directory -> unit -> the names under which it is pulled in there; an instance counts for its template."""
    by_target: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Directory -> unit -> links in the directory itself that point to it."""


def index(tree: UnitTree) -> LinkIndex:
    made = LinkIndex()
    for pull in tree.pulls:
        of_directory = made.by_name.setdefault(pull.directory, {})
        for unit in filter(None, (pull.unit, names.template_of(pull.unit))):
            of_directory.setdefault(unit, []).append(pull.unit)
    for directory, links in tree.links.items():
        of_directory = made.by_target.setdefault(directory, {})
        for name, target in links.items():
            of_directory.setdefault(target.rpartition("/")[2], []).append(name)
    return made


def state(tree: UnitTree, links: LinkIndex, name: str, unit: Unit | None = None) -> str | None:
    """enabled, enabled-runtime, disabled, static, indirect, alias, masked, masked-runtime, linked, linked-runtime,
    generated, transient or bad; None where there is no such file."""
    if name in tree.bad:
        return "bad"
    file = tree.files.get(name)
    if file is None and names.is_instance(name):
        file = tree.files.get(names.template_of(name) or "")
    if file is None:
        return None
    at_runtime = file.path.startswith("/run/")
    if file.masked:
        return "masked-runtime" if at_runtime else "masked"
    if file.alias_of is not None:
        resolved = tree.resolve(name)
        return "masked" if resolved is not None and resolved[1].masked else "alias"
    if file.path.startswith(tuple(f"{place}/" for place in GENERATED)):
        return "generated"
    if file.path.startswith(f"{TRANSIENT}/"):
        return "transient"
    unit = unit or load(tree, name)
    install = install_of(unit) if unit is not None else Install()
    return _state_by_links(tree, links, name, file, install)


def _state_by_links(tree: UnitTree, links: LinkIndex, name: str, file: UnitFile, install: Install) -> str:
    found = _search(tree, links, name, file, install)
    if found is not None:
        return found
    if _search(tree, links, name, file, None) is not None:
        return "indirect"
    if install.has_rules:
        return "disabled"
    return "indirect" if install.has_also else "static"


def _search(tree: UnitTree, links: LinkIndex, name: str, file: UnitFile, install: Install | None) -> str | None:
    """What the links make of it; with `install` only those count that enabling would make."""
    in_runtime = at_all = same_config = same_runtime = below = False
    for directory in tree.load_path.units:
        candidates = list(links.by_name.get(directory, {}).get(name, ()))
        own = links.by_target.get(directory, {}).get(name, ())
        candidates += [link for link in own if link != name]
        if not below and name in tree.links.get(directory, {}) and name not in own:
            candidates.append(name)  # a link of this name to a file of another
        is_runtime = directory.startswith("/run/")
        if any(install is None or install.knows(name, link) for link in candidates):
            if directory == PERSISTENT:
                return "enabled"
            in_runtime, at_all = in_runtime or is_runtime, at_all or not is_runtime
        elif not below and name in own:
            same_config, same_runtime = same_config or directory == PERSISTENT, same_runtime or is_runtime
        below = below or file.path.startswith(f"{directory}/")
    if in_runtime:
        return "enabled-runtime"
    if at_all and names.is_instance(name):
        return "static"
    return "linked" if same_config else "linked-runtime" if same_runtime else None
