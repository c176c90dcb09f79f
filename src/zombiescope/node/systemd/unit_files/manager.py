"""system.conf: the defaults that units without a setting of their own have."""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.base.text import number
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files import syntax
from zombiescope.node.systemd.unit_files.load_path import configuration_files
from zombiescope.node.systemd.unit_files.syntax import Assignment
from zombiescope.node.systemd.unit_files.timespan import parse_us


@dataclass(frozen=True, slots=True)
class ManagerDefaults:
    restart_us: int = 100_000
    start_limit_interval_us: int = 10_000_000
    start_limit_burst: int = 5
    where: tuple[Assignment, ...] = ()
    """The assignments that changed a default."""

    def source(self, *keys: str) -> Assignment | None:
        return next((item for item in reversed(self.where) if item.key in keys), None)


def read(root: Root) -> ManagerDefaults:
    restart_us, interval_us, burst = 100_000, 10_000_000, 5
    where = []
    for path in configuration_files(root, "system.conf"):
        for item in syntax.parse(root.read(path) or b"", path):
            if item.section != "Manager":
                continue
            span_us = parse_us(item.value)
            if item.key == "DefaultRestartSec" and span_us is not None:
                restart_us = span_us
            elif item.key in ("DefaultStartLimitIntervalSec", "DefaultStartLimitInterval") and span_us is not None:
                interval_us = span_us
            elif item.key == "DefaultStartLimitBurst" and (said := number(item.value)) is not None:
                burst = said
            else:
                continue
            where.append(item)
    return ManagerDefaults(restart_us, interval_us, burst, tuple(where))
