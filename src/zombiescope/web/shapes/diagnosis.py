"""What was diagnosed."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

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
    owner: NotRequired[str | None]
    cores: float | None
    baseline_cores: float | None
    cpu_ratio: float | None
    baseline_cpu_ratio: float | None
    genuine: NotRequired[bool | None]


class Symptom(TypedDict):
    """With further facts of its kind: mode, ratio, interface, queue ...

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
    """The same object in every answer that holds a plan. `part` says what it is for; `applicable`: `fix` can do it."""

    id: str
    kind: Literal["change", "look", "advice"]
    part: Literal["look", "stop-gap", "lasting", "last-resort"]
    does: str
    command: str | None
    touches: list[str]
    risk: str
    undo: str
    verify: str
    state: Literal["planned", "applied", "failed", "undone", "skipped"]
    why: str
    protected: str | None
    applicable: bool


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
    repair: NotRequired[Literal["NONE", "COMPONENT_RESET", "RESTART_VM", "REPLACE_VM", "CONTACT_SUPPORT"]]
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


class GpuLoss(TypedDict):
    """`usual` and `now`: ratios of use; watts where `measure` is power. `because`: its threads waited, its cgroup was
    throttled, it was the hog itself, another GPU of its job waited, or unknown."""

    gpu: int
    whose: str
    pids: list[int]
    measure: Literal["utilisation", "power"]
    usual: float
    now: float
    seconds_lost: float
    seconds: int
    because: Literal["waited", "throttled", "itself", "job", "unknown"]
    threads: int
    power_usual_w: float | None
    power_w: float | None


class Cost(TypedDict):
    """Work of GPUs that was not done. `not_known`: GPUs that did less, of which it is unknown whether they waited."""

    gpu_seconds_lost: float
    text: str
    gpus: list[GpuLoss]
    not_known: list[GpuLoss]


class JobFate(TypedDict):
    """A Ray job that was on the node: what became of it, and why."""

    job: str
    fate: Literal["died", "failed by itself", "survived"]
    why: str
    ended: float | None
    ran_s: float | None


class NotedIncident(Span):
    """As a recorder's live diagnosis notes it, which knows one node only."""

    id: str
    state: Literal["open", "closed"]
    severity: Severity
    symptoms: list[Symptom]
    causes: list[Cause]
    ruled_out: list[RuledOut]
    recurrences: list[float]
    not_checked: NotRequired[list[str]]
    cost: NotRequired[Cost | None]
    jobs: NotRequired[list[JobFate]]


class Incident(NotedIncident):
    node: str


class OneIncident(Document, Incident):
    window: Span


class StepState(TypedDict):
    """What became of a step, by its id; `at`: when that was written down."""

    id: str
    state: Literal["applied", "failed", "undone", "skipped"]
    why: str
    at: float


class ActionLogLine(TypedDict):
    """One line of the action log: `who` did what, and how it was before and after."""

    at: float
    run: str
    who: dict[str, int | str | None]
    target: str
    step: str
    event: str
    action: dict[str, Any] | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    why: str


class Check(TypedDict):
    """`ok` is null where it could not be known."""

    name: str
    ok: bool | None
    text: str


class Verification(Span):
    verdict: str
    checks: list[Check]


class Fixes(Document):
    """`readable`: why the log could not be read, else null. `verified` is null if unknown."""

    target: str
    readable: str | None
    steps: list[StepState]
    verified: bool | None
    verification: Verification | None
    log: list[ActionLogLine]


class LiveDiagnosisOutage(Span):
    """The live diagnosis failed while this was recorded: how often, from the first time to the last, and why last."""

    failures: int
    why: str


class Diagnosis(Document):
    """`noted` is missing where the live diagnosis of a running recorder answers instead of a diagnosis made now.
    `live_diagnosis` is there when it failed in the window."""

    node: str
    window: Span
    incidents: list[Incident]
    noted: NotRequired[list[str]]
    not_checked: list[str]
    live_diagnosis: NotRequired[LiveDiagnosisOutage]
