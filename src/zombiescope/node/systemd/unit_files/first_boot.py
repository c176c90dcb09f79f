"""What systemd will have enabled once an image has booted for the first time: its presets, carried out in memory.

pid 1 does `preset-all` in the mode enable-only: each unit that a preset enables gets the links of its [Install]
section, and so does what it names in Also=. An alias is only another name and starts nothing by itself, but something
that is wanted may be wanted under that name (display-manager.service).
"""

from __future__ import annotations

from dataclasses import replace

from zombiescope.node.systemd.unit_files import UnitFiles, enablement, names, presets
from zombiescope.node.systemd.unit_files.instances import Instances
from zombiescope.node.systemd.unit_files.load_path import PERSISTENT, VENDOR
from zombiescope.node.systemd.unit_files.specifiers import expand
from zombiescope.node.systemd.unit_files.tree import Pull, UnitFile, UnitTree
from zombiescope.node.systemd.unit_files.unit import Unit

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
