"""What was diagnosed."""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from zombiescope.web.shapes.common import Document, Severity, Span


class Actor(TypedDict):
    comm: str | None
    pid: int | None
    unit: str | None
    cgroup: str | None
    container: str | None
    pod: str | None
    cores: float | None
    baseline_cores: float | None
    cpu_ratio: float | None
    baseline_cpu_ratio: float | None


@with_config(ConfigDict(extra="allow"))
class Symptom(TypedDict):
    """With the facts of its kind beside these: mode, ratio, interface, queue ..."""

    kind: str
    at: float
    to: float
    cpu: int | None
    seconds: float
    severity: Severity
    group: str | None
    text: str


class ChainLink(TypedDict):
    step: str
    fact: str
    value: float | str | None
    value_unit: str | None
    at: float | None
    source: str | None


class Fix(TypedDict):
    """`commands` says which of the steps can be pasted into a shell; older recorders noted no such list."""

    summary: str
    steps: list[str]
    commands: NotRequired[list[bool]]


class Cause(TypedDict):
    pattern: str
    proof: Literal["kernel", "golden", "literature"]
    confidence: float
    summary: str
    hog: Actor
    culprit: Actor | None
    frames: list[str]
    chain: list[ChainLink]
    fix: Fix


class RuledOut(TypedDict):
    pattern: str
    because: str
    value: float | str | None
    value_unit: str | None


class NotedIncident(Span):
    """As the doctor of a recorder notes it, which knows of one node only."""

    id: str
    state: Literal["open", "closed"]
    severity: Severity
    symptoms: list[Symptom]
    causes: list[Cause]
    ruled_out: list[RuledOut]
    recurrences: list[float]


class Incident(NotedIncident):
    node: str


class OneIncident(Document, Incident):
    window: Span


class Diagnosis(Document):
    """`noted` is missing where the doctor of a running recorder answers instead of a diagnosis."""

    node: str
    window: Span
    incidents: list[Incident]
    noted: NotRequired[list[str]]
    not_checked: list[str]
