"""A check-up: everything that a short recording and a look around it told about a node, with what was found."""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope._missing import Missing
from zombiescope._severity import SEVERITIES
from zombiescope.audit.finding import Finding
from zombiescope.checkup.around import Surroundings
from zombiescope.checkup.cgroups import CgroupsSeen
from zombiescope.checkup.cores import CoresSeen, Window
from zombiescope.checkup.network import Network
from zombiescope.checkup.pressure import Pressure, Reclaim
from zombiescope.checkup.sampled import Hog
from zombiescope.checkup.stalls import Stall
from zombiescope.checkup.units import UnitsSeen
from zombiescope.recording.event import Event
from zombiescope.views.cost import Cost


@dataclass(frozen=True, slots=True)
class Audited:
    """What the audit of the node found, worst first, and what it could not look at."""

    findings: tuple[Finding, ...] = ()
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True, slots=True)
class Checkup:
    """None is not measured; `missing` says why."""

    node: str
    kernel: str | None
    window: Window
    cores: CoresSeen
    stalls: tuple[Stall, ...]
    threads: tuple[Hog, ...]
    crowds: tuple[Hog, ...]
    real_time: tuple[Hog, ...]
    pressure: dict[str, Pressure]
    reclaim: Reclaim | None
    cgroups: CgroupsSeen
    network: Network
    units: UnitsSeen | None
    events: tuple[Event, ...]
    around: Surroundings
    audit: Audited
    missing: tuple[Missing, ...]
    sources: dict[str, bool]
    cost: Cost | None
    findings: tuple[Finding, ...] = ()
    """Of the window, worst first; the audit's are in `audit`."""

    def all_findings(self) -> list[Finding]:
        """With the audit's, worst first; what happened stands before what might."""
        return sorted([*self.findings, *self.audit.findings], key=lambda finding: -rank(finding))


def rank(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity) if finding.severity in SEVERITIES else len(SEVERITIES)
