"""The whole question of each view."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from zombiescope.base.severity import Severity
from zombiescope.query.levels import GroupedBy, Level
from zombiescope.questions import duration, sides
from zombiescope.questions.filters import FilterQuestion, expression
from zombiescope.questions.parameter import Question, parameter
from zombiescope.questions.sides import Side
from zombiescope.questions.window import WHOLE, WindowQuestion

if TYPE_CHECKING:
    from zombiescope.query.selection import Filters

NO_FILTERS = FilterQuestion()
MOST_NODES = 1_000_000
THREADS = 4
"""Python threads in the lanes of a page."""
_MONTH_S = 30 * 86_400
_AGAINST = "Show how the window differs from FROM..TO (on the command line also from DIR or DIR@FROM..TO)."
_PRUNE = "Leave out what is narrower; 0 keeps everything. Default: what cannot be seen, or keeps a file below 1 MB."
_NODES = "At most so many; the answer says what is left out."
_STEP = "The time of one point. Default: as fits."
_SYSTEMD = "Query the running systemd over D-Bus, or do not. Default: only if the root is /."


@dataclass(frozen=True, slots=True)
class ProfileQuestion(Question):
    """Which samples: what every view of stacks asks."""

    window: WindowQuestion = WHOLE
    filters: FilterQuestion = NO_FILTERS


@dataclass(frozen=True, slots=True)
class FlamegraphQuestion(ProfileQuestion):
    invert: bool = parameter(False, "Start from where the time was spent.")
    against: Side | None = parameter(
        None, _AGAINST, metavar="FROM..TO", longest=200, parse=sides.side, foreign=sides.window
    )
    by: GroupedBy = parameter("none", "What the root level groups stacks by; owner is the unit or pod.")
    prune: float | None = parameter(None, _PRUNE, metavar="RATIO", low=0, high=1)
    nodes: int = parameter(100_000, _NODES, low=1, high=MOST_NODES, only="web")


@dataclass(frozen=True, slots=True)
class FlamechartQuestion(ProfileQuestion):
    nodes: int = parameter(100_000, _NODES, low=1, high=MOST_NODES)


@dataclass(frozen=True, slots=True)
class HeatmapQuestion(ProfileQuestion):
    by: Literal["subsecond", "core"] = parameter("subsecond", "Rows: parts of the second, or cores.")
    rows: int = parameter(50, "Rows per second.", metavar="N", low=1, high=1000)
    columns: int = parameter(20_000, "Most columns; neighbours are added up.", low=1, high=200_000, only="web")
    paint: str | None = parameter(None, "Also count samples with a function matching RE.", metavar="RE", only="web")

    def painted(self) -> Filters | None:
        """The same filters, and the function that is searched for. Raises QuestionError."""
        if self.paint is None:
            return None
        from dataclasses import replace

        searched = expression(self.paint, "paint", linear=self.filters.foreign)
        filters = self.filters.chosen()
        # Two expressions: each must be found in some frame.
        return replace(filters, match=searched) if filters.match is None else replace(filters, also=searched)


@dataclass(frozen=True, slots=True)
class StacksQuestion(ProfileQuestion):
    top: int = parameter(20, "How many functions, and how many stacks.", metavar="N", low=1, foreign_high=10_000)
    by: Level = parameter("process", "What the table of who ran counts.")


@dataclass(frozen=True, slots=True)
class WhoQuestion(ProfileQuestion):
    by: Level = parameter("process", "What to count; owner is the unit or pod.")
    top: int = parameter(100, "Most rows.", low=1, high=10_000)


@dataclass(frozen=True, slots=True)
class TracksQuestion(ProfileQuestion):
    by: Level = parameter("process", "What has a track; owner is the unit or pod.")
    top: int = parameter(12, "Most tracks, those that ran most first.", low=1, high=200)
    columns: int = parameter(1_200, "Most points.", low=1, high=20_000)


@dataclass(frozen=True, slots=True)
class ExportQuestion(ProfileQuestion):
    by: Literal["core", "owner", "unit", "pod", "container", "image", "process", "thread", "comm"] | None = parameter(
        None, "collapsed: the first frame (default comm). speedscope: a profile for each (default core)."
    )
    every_event: bool = False
    """All events of an import, for a format that tells them apart."""


@dataclass(frozen=True, slots=True)
class DiffQuestion(Question):
    filters: FilterQuestion = NO_FILTERS
    top: int = parameter(12, "How many functions, and how many units.", metavar="N", low=1, foreign_high=10_000)


@dataclass(frozen=True, slots=True)
class CoresQuestion(Question):
    window: WindowQuestion = WHOLE
    hottest: int | None = parameter(
        None, "Only the N cores that the kernel held longest.", metavar="N", low=1, foreign_high=10_000
    )
    gpu: bool = parameter(False, "Show the GPUs instead: utilisation, temperature, throttling and users.")


@dataclass(frozen=True, slots=True)
class GpuQuestion(Question):
    window: WindowQuestion = WHOLE
    by: Literal["job", "process", "gpu"] = parameter("job", "A line for each of these.")


@dataclass(frozen=True, slots=True)
class ContainersQuestion(Question):
    window: WindowQuestion = WHOLE
    container: tuple[str, ...] = parameter((), "Only this one: the start of its id, name or image.", metavar="NAME")
    pod: tuple[str, ...] = parameter(
        (), "Only of this pod: name, namespace/name, uid, or Deployment/web.", metavar="NAME"
    )
    image: tuple[str, ...] = parameter((), "Only of this image; its end is enough.", metavar="NAME")
    top: int | None = parameter(
        None, "How many are listed. Default: what fits a screen; all in JSON.", metavar="N", low=1, foreign_high=10_000
    )


@dataclass(frozen=True, slots=True)
class PythonQuestion(Question):
    window: WindowQuestion = WHOLE
    pid: tuple[int, ...] = parameter((), "Only this process.", metavar="N", low=0, foreign_high=2**31 - 1, most=1_000)
    tid: tuple[int, ...] = parameter((), "Only this thread.", metavar="N", low=0, foreign_high=2**31 - 1, most=1_000)
    comm: tuple[str, ...] = parameter((), "Only threads of this name; * and ? match.", metavar="NAME")
    top: int = parameter(20, "How many threads, and how many lines of each.", metavar="N", low=1, foreign_high=1_000)


@dataclass(frozen=True, slots=True)
class DelaysQuestion(Question):
    window: WindowQuestion = WHOLE
    cpu: tuple[int, ...] = parameter((), "Only on this core.", metavar="N", low=0, foreign_high=1 << 16, most=1_000)
    pid: tuple[int, ...] = parameter(
        (), "Only what this process suffered or caused.", metavar="N", low=0, foreign_high=2**31 - 1, most=1_000
    )
    comm: tuple[str, ...] = parameter(
        (), "Only what threads of this name suffered or caused; * and ? match.", metavar="NAME"
    )
    least: float | None = parameter(
        None, "Leave out less, in all. Default: 1ms.", metavar="DURATION", parse=duration.between(0, 3600, "0s to 1h")
    )
    top: int = parameter(20, "How many are listed; JSON has up to 1,000.", metavar="N", low=1, foreign_high=1_000)


@dataclass(frozen=True, slots=True)
class EventsQuestion(Question):
    window: WindowQuestion = WHOLE
    kind: tuple[str, ...] = parameter((), "Only this kind; may be repeated.", metavar="KIND")
    at_least: Severity = parameter("info", "Only events that are at least this severe.")


@dataclass(frozen=True, slots=True)
class HistoryQuestion(Question):
    window: WindowQuestion = WHOLE
    step: float | None = parameter(None, _STEP, metavar="DURATION", parse=duration.between(60, _MONTH_S, "1m to 30d"))

    @property
    def step_us(self) -> int | None:
        return None if self.step is None else round(self.step * 1e6)


@dataclass(frozen=True, slots=True)
class SeriesQuestion(Question):
    """Something drawn over the one axis of time."""

    window: WindowQuestion = WHOLE
    columns: int = parameter(1_200, "Most columns or points.", low=1, high=20_000)


@dataclass(frozen=True, slots=True)
class LanesQuestion(SeriesQuestion):
    """The filters are those of the Python lanes: processes and threads are rows there only."""

    filters: FilterQuestion = NO_FILTERS
    threads: int = parameter(THREADS, "Most Python threads, main threads of GPU processes first.", low=1, high=500)


@dataclass(frozen=True, slots=True)
class DiagnoseQuestion(Question):
    window: WindowQuestion = WHOLE
    incident: str | None = parameter(
        None,
        "Only this incident: its id, or the start of it.",
        metavar="ID",
        only="command",
    )
    ray_job: str | None = parameter(
        None, "Only what affected this Ray job: its time and its cores.", metavar="ID", only="command"
    )
    pod: str | None = parameter(
        None,
        "Only what affected this pod: its name, its uid, or Deployment/web.",
        metavar="NAME",
        only="command",
    )

    job: str | None = parameter(
        None,
        "What happened to this distributed job, as `gpu` names it (slurm/4711.0, Job/train): its time and its ranks.",
        metavar="ID",
        only="command",
    )
    slurm_job: str | None = parameter(
        None, "The same of this Slurm job: 4711, or a step 4711.0.", metavar="ID", only="command"
    )

    @property
    def subject(self) -> tuple[Literal["Ray job", "pod", "job", "Slurm job"], str] | None:
        asked: tuple[tuple[Literal["Ray job", "pod", "job", "Slurm job"], str | None], ...] = (
            ("Ray job", self.ray_job), ("pod", self.pod), ("job", self.job), ("Slurm job", self.slurm_job),
        )  # fmt: skip
        return next(((kind, name) for kind, name in asked if name), None)


@dataclass(frozen=True, slots=True)
class AuditQuestion(Question):
    """Only the command line asks this; a server examines the machine that it runs on."""

    root: Path = parameter(Path("/"), "Root directory to examine: an unpacked image.", metavar="PATH")
    allow: Path | None = parameter(None, "Accepted findings: an id and a reason per line.", metavar="FILE")
    at_least: Severity = parameter("info", "Lowest severity to show.")
    systemd: bool | None = parameter(None, _SYSTEMD)
