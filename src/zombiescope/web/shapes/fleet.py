"""The report of a fleet. `fleet report --json` has the same, and all nodes and incidents of it."""

from __future__ import annotations

from typing import Literal, TypedDict

from zombiescope.web.shapes.common import Document, Severity, Span

FleetNodeState = Literal["sick", "healthy", "not_judged", "blind", "copy"]

FleetNode = TypedDict(
    "FleetNode",
    {
        "node": str, "sick": bool, "labels": dict[str, str], "labels_changed": bool, "kernel": str | None,
        "image": str | None, "zone": str | None, "instance_type": str | None, "cpus": int | None, "from": float | None,
        "to": float | None, "recorded_s": int, "saturated_s": float | None, "longest_s": float | None,
        "restarts": int | None, "critical": int | None, "nic": int | None, "dying": int | None,
        "dying_per_hour": float | None, "memory_cgroups": int | None, "lost": int | None, "damaged": int,
        "damage": str | None, "ahead_s": float | None, "most_dying": int | None, "most_memory_cgroups": int | None,
        "boot": str | None, "name": str | None, "not_judged": str | None, "labels_left_out": int,
        "age_s": float | None, "boots": int, "state": FleetNodeState, "why": str | None, "newest": float | None,
    },
)  # fmt: skip

FleetIncident = TypedDict(
    "FleetIncident",
    {
        "node": str, "id": str | None, "from": float, "to": float, "severity": Severity, "pattern": str,
        "culprit": str | None, "hog": str | None, "summary": str | None, "frames": list[str],
        "gpu_lost_s": float | None, "job_lost_s": float,
    },
)  # fmt: skip


class FleetCause(TypedDict):
    pattern: str
    culprit: str | None
    nodes: int
    incidents: int
    job_hours_lost: float
    gpu_seconds_lost: float | None
    first: float
    last: float


class LabelValue(TypedDict):
    label: str
    value: str


class FleetRest(TypedDict):
    nodes: int
    affected: int


class FleetSplit(TypedDict):
    """Where a number divides the nodes: at `threshold`, between the values `below` and `above`."""

    name: str
    role: Literal["given", "course"]
    threshold: float
    below: float
    above: float
    is_above: bool
    is_time: bool


class FleetQuarter(TypedDict):
    low: float
    high: float
    nodes: int
    affected: int


class FleetNumber(TypedDict):
    """How many nodes are affected in each quarter of a number, the lowest values first. `role` course: a step of the
    illness; given: what a node has anyway."""

    name: str
    noun: str
    role: Literal["given", "course"]
    is_time: bool
    quarters: list[FleetQuarter]


class FleetGroup(TypedDict):
    """Judged nodes that share a label, a pair of labels, or a side of a number. `lift` null: no other node is affected.
    `spared`: fewer are affected than elsewhere. `not_judged` nodes of the group are in no figure. `also`: other names
    of the same nodes, which are indistinguishable. `because`: how the number in `explained_by` explains it."""

    label: str
    value: str
    text: str
    sentence: str
    spared: bool
    not_judged: int
    because: str | None
    split: FleetSplit | None
    terms: list[LabelValue]
    cause: str | None
    nodes: int
    affected: int
    ratio: float
    rest: FleetRest
    lift: float | None
    p_value: float
    p_corrected: float
    significant: bool
    also: list[list[LabelValue]]
    explained_by: list[LabelValue] | None


class FleetUnit(TypedDict):
    unit: str
    sick: int
    sick_nodes: int
    healthy: int
    healthy_nodes: int
    p_value: float
    p_corrected: float
    not_judged: int
    significant: bool


class FleetArrival(TypedDict):
    label: str
    value: str
    nodes: int
    sick_after: int
    sick_before: int
    first: float
    last: float
    p_value: float
    p_corrected: float
    significant: bool


class FleetOnset(Span):
    nodes: int
    of_nodes: int
    p_corrected: float


class FleetCluster(TypedDict):
    path: list[str]
    incidents: int
    nodes: int
    patterns: dict[str, int]
    paths: int


class NodeForecast(TypedDict):
    node: str
    dying: int
    per_hour: float
    hours: float | None


class FleetOutlook(TypedDict):
    threshold: int | None
    learnt_from: int
    nodes: list[NodeForecast]


class FleetDamage(TypedDict):
    node: str
    day: str | None
    what: str


class FleetRead(TypedDict):
    files: int
    bytes: int
    core_seconds: float
    fresh_items: int


class FleetNotJudged(TypedDict):
    node: str
    why: str | None


class FleetCopy(TypedDict):
    node: str
    of: str


class FleetLabelsLeftOut(TypedDict):
    """`most`: how many labels the node lost that lost most."""

    nodes: int
    most: int


class FleetInventory(TypedDict):
    """`matched` nodes have labels from it; `without` have none; `unknown` are not in the fleet."""

    source: str
    nodes: int
    matched: int
    without: list[str]
    unknown: list[str]


class FleetReport(TypedDict):
    """`sick` and `healthy` nodes were judged; all others are in no test."""

    root: str
    engine: str
    headline: str
    window: Span
    nodes: list[FleetNode]
    nodes_in_all: int
    sick: int
    healthy: int
    blind: list[str]
    not_judged: list[FleetNotJudged]
    copies: list[FleetCopy]
    diagnosed_now: list[str]
    labels_left_out: FleetLabelsLeftOut
    inventory: FleetInventory | None
    incidents: list[FleetIncident]
    incidents_in_all: int
    causes: list[FleetCause]
    by: list[FleetGroup]
    course: list[FleetGroup]
    numbers: list[FleetNumber]
    tried: int
    values_left_out: int
    alpha: float
    units: list[FleetUnit]
    arrivals: list[FleetArrival]
    onsets: list[FleetOnset]
    clusters: list[FleetCluster]
    forecast: FleetOutlook
    damage: list[FleetDamage]
    read: FleetRead


class FleetAnswer(Document):
    """`none`: this server shows no fleet. `done` of `of` node-days were read."""

    state: Literal["none", "reading", "ready", "failed"]
    root: str | None
    done: int
    of: int
    why: str | None
    report: FleetReport | None
