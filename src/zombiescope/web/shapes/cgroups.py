"""The census of memory cgroups, and what an audit of the machine found."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from zombiescope.model.answer import Named
from zombiescope.web.shapes.common import Document, Missing, Severity

Verdict = Annotated[Literal["harmless", "watch", "costly"], Named("Verdict")]


class MemoryCgroups(TypedDict):
    hierarchy: str | None
    total: int | None
    live: int | None
    dying: int | None
    created: int | None
    removed: int | None
    released: int | None
    lost: int | None


class Creator(TypedDict):
    comm: str | None
    pid: int | None
    unit: str | None
    container: str | None
    uid: int | None
    exe: str | None


class CgroupLeak(TypedDict):
    """One normalised path; "" sums the rest. Not exact: a lower bound. `names`: how many names its cgroups had;
    `charged_to`: who asked for them, where the creator only carries out."""

    path: str
    dying: int
    created: int | None
    removed: int | None
    released: int | None
    exact: bool | None
    names: int | None
    creator: Creator
    changed: float
    charged_to: str | None


class Forecast(TypedDict):
    """What one read of the root's statistics costs, and when that reaches one and five seconds: always estimated, from
    what one cgroup costs."""

    estimated: bool
    read_cost_now_s: float | None
    costs_1s_at: float | None
    costs_5s_at: float | None


class Cgroups(Document):
    node: str
    kernel: str | None
    at: float | None
    source: Literal["recording", "now"]
    memory: MemoryCgroups
    growth_per_hour: float | None
    verdict: Verdict | None
    why: str | None
    leaks: list[CgroupLeak]
    forecast: Forecast


class Evidence(TypedDict):
    file: str
    line: int | None
    text: str


class Finding(TypedDict):
    id: str
    rule: str
    unit: str | None
    severity: Severity
    why: str
    evidence: list[Evidence]
    fix: list[str]


class AllowedFinding(Finding):
    reason: str


class StaleLine(TypedDict):
    """A line of the baseline that no finding needs any more."""

    id: str
    line: int
    reason: str


class Audited(Document):
    available: Literal[True]
    root: str
    live: bool
    platform: str | None
    units: int
    services_started: int
    findings: list[Finding]
    allowed: list[AllowedFinding]
    stale: list[StaleLine]
    missing: list[Missing]


class NotAudited(Document):
    """The recording is of another machine, and only the server's own can be looked at."""

    available: Literal[False]
    why: str


Audit = Annotated[Audited | NotAudited, Named("Audit")]
