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
    container_name: NotRequired[str | None]
    image: NotRequired[str | None]
    namespace: NotRequired[str | None]
    cores: float | None
    baseline_cores: float | None
    cpu_ratio: float | None
    baseline_cpu_ratio: float | None


@with_config(ConfigDict(extra="allow"))
class Symptom(TypedDict):
    """With the facts of its kind beside these: mode, ratio, interface, queue ...

    From `title` on it is what the detector of its kind declares; older recorders noted no such fields.
    """

    kind: str
    at: float
    to: float
    cpu: int | None
    seconds: float
    severity: Severity
    group: str | None
    text: str
    title: NotRequired[str]
    role: NotRequired[Literal["core", "hog", "victim"]]
    table: NotRequired[str]
    core_rank: NotRequired[int | None]
    victim: NotRequired[str | None]


class ChainLink(TypedDict):
    """`path` are kernel functions, outermost first, and `means` is what they are for; older recorders noted neither."""

    step: str
    fact: str
    value: float | str | None
    value_unit: str | None
    at: float | None
    source: str | None
    counter: NotRequired[str | None]
    path: NotRequired[list[str]]
    means: NotRequired[str | None]


class FixStep(TypedDict):
    kind: Literal["command", "advice"]
    text: str
    comment: str
    touches: NotRequired[str]
    undo: NotRequired[str]
    check: NotRequired[str]


class Fix(TypedDict):
    """`steps` are the lines of the plan as text, `commands` which of them can be pasted into a shell.

    Older recorders noted no plan, and the oldest no commands.
    """

    summary: str
    steps: list[str]
    commands: NotRequired[list[bool]]
    plan: NotRequired[list[FixStep]]


class Cause(TypedDict):
    pattern: str
    proof: Literal["kernel", "golden", "literature"]
    confidence: float
    strength: NotRequired[float]
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
    not_checked: NotRequired[list[str]]


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
