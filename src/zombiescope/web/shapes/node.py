"""The recordings, what is in one, and what is drawn over its time."""

from __future__ import annotations

from typing import Literal, TypedDict

from zombiescope.model.modes import Modes
from zombiescope.web.shapes.common import (
    Document,
    Gap,
    Missing,
    Severity,
    Span,
    TimelineEvent,
    Window,
    WindowHeader,
)
from zombiescope.web.shapes.diagnosis import NotedIncident
from zombiescope.web.shapes.python import PythonLane

RecordingEntry = TypedDict(
    "RecordingEntry",
    {
        "key": str,
        "title": str,
        "node": str | None,
        "from": float | None,
        "to": float | None,
        "live": bool,
        "note": str | None,
        "place": str | None,
        "gone": bool,
    },
)
"""`node` and the times are null until it is built or read. `place`: its directory, pack or address; null where it is
built. `gone`: it was deleted or moved since it was served."""


class RecordingList(Document):
    """`fleet`: this server shows a fleet, too."""

    recordings: list[RecordingEntry]
    fleet: bool


class Damage(TypedDict):
    file: str
    what: str


class Info(Window):
    kernel: str | None
    machine: str | None
    os: str | None
    timezone: str | None
    cpus: int | None
    left_out: list[int]
    labels: dict[str, str]
    boots: list[str]
    samples: int
    tables: dict[str, int]
    bytes: int
    gpu_driver: str | None
    gpus: list[str]
    parquet_parts: int
    log_segments: int
    gaps: list[Gap]
    damage: list[Damage]
    missing: list[Missing]
    live: bool
    zone_offset_s: float
    hz: int | None
    interval_s: float | None
    version: str
    note: str | None


class RecorderCost(TypedDict):
    cpu_ratio: float | None
    rss_bytes: int | None
    bytes_per_hour: float | None
    lost: int
    helpers_rss_bytes: int | None


class PartHealth(TypedDict):
    """`since`: in this state; `last_success` is null for a part that never did its work yet; `work`: how often it did.
    `why`: what is wrong, or the reason of the last failure; `fix`: the command or setting for it, or empty.
    `obscured_by`: the part whose silence hides the state of this one."""

    name: str
    state: Literal["ok", "failed", "hung", "off"]
    since: float
    last_success: float | None
    work: int
    why: str
    fix: str
    failures: int
    pid: int | None
    rss_bytes: int | None
    obscured_by: str | None


class OneRecorder(TypedDict):
    """A recorder that runs on this machine, or that was killed (`died`: when) and not started again."""

    running: bool
    pid: int | None
    recording: str | None
    node: str | None
    timezone: str | None
    since: float | None
    until: float | None
    cost: RecorderCost | None
    bytes: int | None
    died: float | None
    gaps: list[Gap]
    missing: list[Missing]
    left_out: list[int]
    incidents: list[NotedIncident]
    parts: list[PartHealth]


class Status(Document):
    """The recorder that runs longest; `recorders` has all of them."""

    running: bool
    pid: int | None
    recording: str | None
    node: str | None
    timezone: str | None
    since: float | None
    until: float | None
    cost: RecorderCost | None
    bytes: int | None
    died: float | None
    gaps: list[Gap]
    missing: list[Missing]
    left_out: list[int]
    incidents: list[NotedIncident]
    parts: list[PartHealth]
    recorders: list[OneRecorder]


class Health(Document):
    """`live`: a recorder writes this recording now. No parts: none reports for it on the server's machine."""

    live: bool
    parts: list[PartHealth]


class WorstSecond(TypedDict):
    """The second in which the kernel held a core most; who ran there is null without samples."""

    at: float
    cpu: int
    modes: Modes
    kernel: float
    samples: int | None
    comm: str | None
    pid: int | None
    unit: str | None
    container: str | None
    task_ratio: float | None
    path: list[str]


class Hidden(TypedDict):
    """What the mean of all cores hid around it."""

    average_busy: float
    average_kernel: float
    core: int
    core_kernel: float
    seconds: float
    at: float


class Worst(Window):
    second: WorstSecond | None
    hidden: Hidden | None


class Zombies(TypedDict):
    at: list[float]
    total: list[int | None]
    live: list[int | None]
    dying: list[int | None]


class Pressure(TypedDict):
    at: list[float]
    cpu: list[float | None]
    memory: list[float | None]
    io: list[float | None]


class GpuSeries(TypedDict):
    """Percent of `count` GPUs, their mean and the least busy one; the power of all of them."""

    at: list[float]
    count: int
    mean: list[float | None]
    lowest: list[float | None]
    lowest_gpu: list[int | None]
    power_w: list[float | None]


class ChartLine(TypedDict):
    name: str
    values: list[float | None]


class Chart(TypedDict):
    """A lane of lines: what the recording has of disk, network, memory, training steps and others. null: nothing was
    recorded then."""

    name: str
    unit: Literal["bytes/s", "ratio", "s"]
    at: list[float]
    lines: list[ChartLine]


class LongWait(Span):
    """A task or a softirq that could have run, and who ran on that core then; null: not known."""

    cpu: int
    victim: str
    by: str | None


class KnownSchedule(Span):
    cpu: int


class DelayLane(TypedDict):
    """The longest waits. `known`: where there is a snapshot of the schedule; `too_many`: the window is too long."""

    waits: list[LongWait]
    known: list[KnownSchedule]
    too_many: bool


class Lanes(Window):
    events: list[TimelineEvent]
    events_left_off: int
    zombies: Zombies
    pressure: Pressure
    gpus: GpuSeries
    charts: list[Chart]
    delays: DelayLane
    python: list[PythonLane]
    python_left_out: int
    gaps: list[Gap]


class Events(Window):
    events: list[TimelineEvent]


class StripHeader(WindowHeader):
    """u8 arrays columns*cpus named by mode, f32 average_busy and average_kernel, i32 worst_core."""

    column_s: float
    columns: int
    cpus: list[int]
    from_samples: bool


class HistoryPoint(TypedDict):
    """A span that starts at `at`; counts of cgroups are the last of the span."""

    at: float
    boot: str
    recorded_s: int
    cores_saturated_s: float
    longest_saturation_s: float
    longest_cpu: int | None
    busy_ratio: float | None
    system_ratio: float | None
    memory_cgroups: int | None
    dying: int | None
    restarts: int
    critical_events: int
    nic_events: int
    lost: int


class History(Document):
    node: str
    points: list[HistoryPoint]


class Tick(TypedDict):
    """One second of a recorder that runs; `at` is its end."""

    at: float
    interval_s: float
    cpus: list[int]
    user: list[float | None]
    system: list[float | None]
    irq: list[float | None]
    softirq: list[float | None]
    steal: list[float | None]
    iowait: list[float | None]
    average_busy: float | None
    average_kernel: float | None
    dying: int | None
    total: int | None
    hz_samples: int | None


class IncidentNote(Span):
    """An incident in one line."""

    id: str
    state: Literal["open", "closed"]
    severity: Severity
    summary: str | None


class RecorderState(TypedDict):
    running: bool
