"""Which units start without anybody asking, and because of what.

Followed from default.target: the links in .wants, .requires and .upholds directories, Wants=, Requires=, BindsTo=
and Upholds= of what is reached, and the service behind each timer, socket and path unit that is reached. A unit
that is enabled below a target which is not reached is counted too (a generator may pull that target in, as
cloud-init's does), and so is what a first boot would enable.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from zombiescope.node.systemd.unit_files import UnitFiles, enablement, names, presets
from zombiescope.node.systemd.unit_files.instances import Instances
from zombiescope.node.systemd.unit_files.load_path import PERSISTENT, VENDOR
from zombiescope.node.systemd.unit_files.specifiers import expand
from zombiescope.node.systemd.unit_files.tree import Pull, UnitFile, UnitTree
from zombiescope.node.systemd.unit_files.unit import Unit

_PULLS = ("Wants", "Requires", "BindsTo", "Upholds")
_TRIGGERS = {"timer": ("Timer", "Unit"), "path": ("Path", "Unit"), "socket": ("Socket", "Service")}
# What systemd's own targets pull in, for a tree that lacks their files.
_BUILT_IN = {
    "default.target": ("graphical.target",),
    "graphical.target": ("multi-user.target",),
    "multi-user.target": ("basic.target",),
    "basic.target": ("sysinit.target", "sockets.target", "timers.target", "paths.target", "slices.target"),
    "sysinit.target": ("local-fs.target", "swap.target"),
}

FIRST_BOOT = "a first boot"


@dataclass(frozen=True, slots=True)
class Start:
    """Why a unit starts."""

    unit: str
    by: str
    """The unit that pulls it in or triggers it; "a first boot" for a preset."""
    file: str
    line: int | None
    text: str
    triggered: bool = False
    """By a timer, a socket or a path, not at boot."""


def starts(files: UnitFiles) -> dict[str, Start]:
    """Unit -> why, for every unit that has a file and starts by itself."""
    return _Walk(files).run()


class _Walk:
    def __init__(self, files: UnitFiles) -> None:
        self._files = files
        self._tree = after_first_boot(files)
        self._found: dict[str, Start] = {}
        self._todo: deque[str] = deque()
        self._instances = Instances(files.endless)
        self._pulled_by: dict[str, list[tuple[str, str]]] = {}
        for pull in self._tree.pulls:
            self._pulled_by.setdefault(self._own(pull.by), []).append((pull.unit, pull.path))

    def run(self) -> dict[str, Start]:
        self._reach(Start("default.target", "boot", "", None, ""))
        self._drain()
        for pull in self._tree.pulls:  # enabled, but below a target that nothing reaches
            self._reach(_pulled(pull.unit, pull.by, pull.path), is_named=True)
        self._drain()
        return {name: start for name, start in self._found.items() if self._files.unit(name) is not None}

    def _own(self, name: str) -> str:
        resolved = self._tree.resolve(name)
        return name if resolved is None else resolved[0]

    def _reach(self, start: Start, *, is_named: bool = False) -> None:
        """`is_named`: by a link, of which there are not without end."""
        name = self._own(start.unit)
        if name not in self._found and not names.is_template(name) and (is_named or self._instances.follows(name)):
            self._found[name] = Start(name, start.by, start.file, start.line, start.text, start.triggered)
            self._todo.append(name)

    def _drain(self) -> None:
        while self._todo:
            name = self._todo.popleft()
            for by in filter(None, (name, names.template_of(name))):
                for pulled, path in self._pulled_by.get(by, ()):
                    self._reach(_pulled(pulled, name, path), is_named=True)
            unit = self._files.unit(name)
            if unit is None:
                for other in _BUILT_IN.get(name, ()):
                    self._reach(Start(other, name, "", None, "built in"))
                continue
            self._reach_dependencies(unit)
            self._reach_triggered(unit)

    def _reach_dependencies(self, unit: Unit) -> None:
        for key in _PULLS:
            for item in unit.listed("Unit", key):
                for word in item.value.split():
                    wanted = expand(word, unit.name)
                    if wanted is not None and names.is_valid(wanted):
                        self._reach(Start(wanted, unit.name, item.file, item.line, f"{key}={word}"))

    def _reach_triggered(self, unit: Unit) -> None:
        section, key = _TRIGGERS.get(unit.kind, ("", ""))
        if not section:
            return
        named = unit.last(section, key)
        prefix, instance, _ = names.split(unit.name)
        target = named.value if named and named.value else names.build(prefix, instance, "service")
        line = named.line if named else None
        self._reach(Start(target, unit.name, unit.file, line, f"triggered by {unit.name}", triggered=True))


def _pulled(unit: str, by: str, path: str) -> Start:
    if path == MACHINE_ID:
        return Start(unit, FIRST_BOOT, path, None, f"no machine id: presets apply, and {by} will pull it in")
    return Start(unit, by, path, None, f"{by} pulls it in")


# --- first boot -------------------------------------------------------------------------------------------------------
# What systemd will have enabled once an image has booted for the first time: its presets, carried out in memory.
#
# pid 1 does `preset-all` in the mode enable-only: each unit that a preset enables gets the links of its [Install]
# section, and so does what it names in Also=. An alias is only another name and starts nothing by itself, but something
# that is wanted may be wanted under that name (display-manager.service).

MACHINE_ID = "/etc/machine-id"
"""The path of links that are not there yet: this file is why they will be."""
_LINKS = {"WantedBy": "wants", "RequiredBy": "requires", "UpheldBy": "upholds"}


def after_first_boot(files: UnitFiles) -> UnitTree:
    """The tree with the links that the presets would make; the same tree where it has booted before."""
    if not files.first_boot:
        return files.tree
    tree = replace(files.tree, files=dict(files.tree.files), pulls=list(files.tree.pulls))
    done: set[str] = set()
    instances = Instances(files.endless)
    for name in sorted(files.tree.files):
        for enabled in _enabled(files, name):
            _enable(files, tree, enabled, done, instances)
    tree.find_aliases()
    return tree


def _enabled(files: UnitFiles, name: str) -> list[str]:
    """The unit itself, or the instances that a preset names."""
    enable, rule = presets.decide(files.presets, name)
    file = files.tree.files[name]
    if not enable or file.alias_of is not None or file.masked:
        return []
    if names.is_template(name) and rule is not None and rule.instances:
        return [names.with_instance(name, instance) for instance in rule.instances]
    return [name]


def _enable(files: UnitFiles, tree: UnitTree, name: str, done: set[str], instances: Instances) -> None:
    """The unit, then what it names in Also=, and so on: a chain of them may be as long as an image likes."""
    left = [name]
    while left:
        one = left.pop()
        if one in done or not (one == name or instances.follows(one)):
            continue
        done.add(one)
        unit = files.unit(one)
        if unit is None:
            continue
        _link(tree, unit, one)
        also = (expand(word, one) for word in unit.words("Install", "Also"))
        left += reversed([other for other in also if other is not None])


def _link(tree: UnitTree, unit: Unit, name: str) -> None:
    target = name
    if names.is_template(name):
        default = enablement.install_of(unit).default_instance
        target = names.with_instance(name, default) if default else name
    if not names.is_template(target):
        for key, kind in _LINKS.items():
            for word in unit.words("Install", key):
                by = expand(word, target)
                if by is not None and names.is_valid(by):
                    tree.pulls.append(Pull(target, by, kind, PERSISTENT, MACHINE_ID))
    for word in unit.words("Install", "Alias"):
        alias = expand(word, target)
        if alias is not None and names.is_valid(alias) and _is_free(tree, alias):
            tree.files[alias] = UnitFile(alias, f"{PERSISTENT}/{alias}", target, masked=False, linked=False)


def _is_free(tree: UnitTree, alias: str) -> bool:
    """The link goes into /etc/systemd/system, where it hides a file of the vendor but not one of the administrator."""
    there = tree.files.get(alias)
    return there is None or there.path.startswith(VENDOR)
