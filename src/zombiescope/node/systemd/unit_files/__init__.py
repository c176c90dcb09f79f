"""Unit files of a root directory, read as systemd reads them; see docs/design/0009.

`read` takes in the names; a unit is parsed when it is asked for, and kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files import enablement, manager, names, presets, service, tree
from zombiescope.node.systemd.unit_files.enablement import LinkIndex
from zombiescope.node.systemd.unit_files.manager import ManagerDefaults
from zombiescope.node.systemd.unit_files.service import Service
from zombiescope.node.systemd.unit_files.tree import UnitTree
from zombiescope.node.systemd.unit_files.unit import Unit, load

_LIBRARY = re.compile(r"libsystemd-(?:shared|core)-(\d+)")


@dataclass(slots=True)
class UnitFiles:
    root: Root
    tree: UnitTree
    defaults: ManagerDefaults
    presets: tuple[presets.PresetRule, ...]
    first_boot: bool
    systemd_version: int | None
    """From the name of its library; None where there is no systemd."""
    _links: LinkIndex
    endless: set[str] = field(default_factory=set)
    """Templates of which there were more instances than are followed (instances.py)."""
    _units: dict[str, Unit | None] = field(default_factory=dict)
    _services: dict[str, Service] = field(default_factory=dict)

    def unit(self, name: str) -> Unit | None:
        """By any of its names; None where there is none, or it is masked."""
        if name not in self._units:
            self._units[name] = load(self.tree, name)
        return self._units[name]

    def service(self, name: str) -> Service | None:
        unit = self.unit(name)
        if unit is None or unit.kind != "service":
            return None
        if unit.name not in self._services:
            self._services[unit.name] = service.settings(unit, self.defaults, self.systemd_version)
        return self._services[unit.name]

    def state(self, name: str) -> str | None:
        """As `systemctl is-enabled` would say it."""
        return enablement.state(self.tree, self._links, name, self._units.get(name))

    def preset(self, name: str) -> bool | None:
        return presets.decide(self.presets, name)[0]

    @property
    def names(self) -> Iterable[str]:
        return self.tree.files.keys() | self.tree.bad


def read(root: Root) -> UnitFiles:
    found = tree.read(root)
    version = systemd_version(root)
    return UnitFiles(
        root=root,
        tree=found,
        defaults=manager.read(root),
        presets=presets.read(root, version),
        first_boot=presets.is_first_boot(root),
        systemd_version=version,
        _links=enablement.index(found),
    )


def systemd_version(root: Root) -> int | None:
    for directory in ("/usr/lib/systemd", "/lib/systemd", "/usr/lib64/systemd", *_multiarch(root)):
        for name in root.names(directory):
            found = _LIBRARY.match(name)
            if found:
                return int(found[1])
    return None


def _multiarch(root: Root) -> list[str]:
    return [f"/usr/lib/{name}/systemd" for name in root.names("/usr/lib") if name.endswith("-linux-gnu")]


__all__ = ["Service", "Unit", "UnitFiles", "names", "read", "systemd_version"]
