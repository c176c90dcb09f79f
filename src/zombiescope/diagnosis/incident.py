"""What a diagnosis says: incidents, each with its symptoms, its causes (best first) and what was ruled out.

These are values between layers: detectors make symptoms, patterns make causes, reports print them. Every number that
stands in a chain says where it was read, so that a reader can look for himself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from zombiescope.base.severity import SEVERITIES, Severity
from zombiescope.diagnosis.gpu_loss import GpuCost
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.model.plans.step import Step

Proof = Literal["kernel", "golden", "literature"]
State = Literal["open", "closed"]

KNOWN: dict[Proof, str] = {
    "kernel": "seen on a real kernel",
    "golden": "known from a documented case",
    "literature": "known only from literature",
}
"""How we know a pattern, as every report says it."""

MOST_OF_A_NAME = 120

NOTHING_FOUND = "no problems found in the recorded part of this window"
NOTHING_SEEN = "this window cannot be judged: neither cores nor stacks were recorded in it"


@dataclass(frozen=True, slots=True)
class Actor:
    """A task, or a group of them. `cores`: how many it kept busy; `cpu_ratio`: of the whole node, 0 to 1."""

    comm: str | None = None
    pid: int | None = None
    unit: str | None = None
    cgroup: str | None = None
    container: str | None = None
    """Its whole id."""
    pod: str | None = None
    """Its name where that is known, else its uid."""
    container_name: str | None = None
    image: str | None = None
    namespace: str | None = None
    """The pod's, of Kubernetes."""
    owner: str | None = None
    """The pod's: Deployment/web. None where nobody asked the API server."""
    cores: float | None = None
    baseline_cores: float | None = None
    """In its busier hours of the last thirty days."""
    cpu_ratio: float | None = None
    baseline_cpu_ratio: float | None = None
    genuine: bool | None = None
    """Whether user and program fit its name (carriers.is_genuine); None where they were not recorded."""

    @property
    def name(self) -> str:
        """As a person would say it: the program with its pod, its container or its unit; else the unit, the pod or the
        container itself. A program or unit beside an image, itself in no container, is the one that runs that image."""
        who = self.comm or (None if self.container or self._guest else self.unit)
        if who is None:
            return self._thing
        where = (self._guest if self.container else None) or self.unit
        said = _short(who) if where in (None, who) else f"{_short(who)} ({_short(where or '')})"
        return f"{said}, which runs {_short(self.image)}" if self.image and not self.container else said

    @property
    def subject(self) -> str:
        """Its name where a sentence goes on about it: a clause in it ends with a comma."""
        return f"{self.name}," if ", which" in self.name else self.name

    @property
    def _thing(self) -> str:
        """Without a program."""
        image = _short(self.image or "")
        if guest := self._guest:
            return f"{guest} (image {image})" if image else guest
        if image:
            return f"containers of image {image}"
        known = self.unit or (f"container {self.container}" if self.container else None) or self.cgroup
        return _short(known) if known else "somebody"

    @property
    def _guest(self) -> str | None:
        """The pod or the container, where it has a name."""
        if self.pod and self.namespace:
            owner = f" of {_short(self.owner)}" if self.owner else ""
            return f"pod {_short(self.namespace)}/{_short(self.pod)}{owner}"
        return f"container {_short(self.container_name)}" if self.container_name and not self._asks else None

    @property
    def _asks(self) -> bool:
        """It stands for who runs the container, and is not in it."""
        return bool(self.comm or self.unit) and not self.container


def _short(text: str) -> str:
    """Names are other people's: what they hold is escaped where it is printed, how long they are is bounded here."""
    return text if len(text) <= MOST_OF_A_NAME else text[: MOST_OF_A_NAME - 1] + "…"


@dataclass(frozen=True, slots=True)
class Link:
    """One step of a chain from symptom to culprit: a fact, its number, when it held, and where it was read.

    The sentence is for people. What a program needs of it is beside it: the number, the counter, the path and meaning.
    """

    step: str
    fact: str
    value: float | int | str | None = None
    value_unit: str | None = None
    at_us: int | None = None
    source: str | None = None
    counter: str | None = None
    """The kernel's name of what was counted: pgfault."""
    path: tuple[str, ...] = ()
    """Kernel functions, outermost first, of a step that is about them."""
    means: str | None = None
    """What that path is there for: "memory.numa_stat is read"."""


@dataclass(frozen=True, slots=True)
class Fix:
    """What a pattern says should be done; incident_plan.py makes the plan of it that everybody shows."""

    summary: str
    steps: tuple[Step, ...] = ()


Repair = Literal["NONE", "COMPONENT_RESET", "RESTART_VM", "REPLACE_VM", "CONTACT_SUPPORT"]
"""What a repair system may do to the node for a cause, in the words of NVSentinel. NONE: the plan is enough."""


@dataclass(frozen=True, slots=True)
class Cause:
    pattern: str
    proof: Proof
    confidence: float
    summary: str
    hog: Actor
    culprit: Actor | None
    frames: tuple[str, ...]
    chain: tuple[Link, ...]
    fix: Fix
    because: str = ""
    """The summary without what was lost, for where that stands beside it."""
    strength: float = 0.0
    """How much evidence there is; the confidence is made of it (calibration.py)."""
    is_ordinary: bool = False
    """Healthy nodes do that, too: a note, unless somebody suffers from it."""
    repair: Repair = "NONE"
    is_harmful: bool = False
    """It was seen doing what delays others, though no pattern says why."""


@dataclass(frozen=True, slots=True)
class RuledOut:
    pattern: str
    because: str
    value: float | int | str | None = None
    value_unit: str | None = None


@dataclass(frozen=True, slots=True)
class JobFate:
    """What became of a Ray job that was on the node (ray_jobs.py)."""

    job: str
    """The name under which it was submitted, else its id."""
    fate: Literal["died", "failed by itself", "survived"]
    why: str
    """What of it was lost here, or what it said at its end."""
    ended_us: int | None
    ran_s: float | None = None
    """How long it had run when it ended: of one that died, its lost work, as far as nobody knows of a checkpoint."""


@dataclass(frozen=True, slots=True)
class Incident:
    id: str
    from_us: int
    to_us: int
    state: State
    severity: Severity
    symptoms: tuple[Symptom, ...]
    causes: tuple[Cause, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()
    recurrences: tuple[int, ...] = ()
    """When the same thing happened again, in Unix microseconds."""
    not_checked: tuple[str, ...] = ()
    """What could not be looked at, and why; blind is not healthy."""
    cost: GpuCost | None = None
    """What it cost in work of GPUs; None where no GPU was recorded."""
    jobs: tuple[JobFate, ...] = ()
    """Ray jobs that were there, those that died of it first."""

    @property
    def seconds(self) -> float:
        return (self.to_us - self.from_us) / 1e6


SHOWN_JOBS = 8


def job_lines(jobs: tuple[JobFate, ...]) -> list[tuple[str, str]]:
    """What became of Ray's jobs, one line for each fate."""
    titles = {"died": "Ray jobs that died of it", "failed by itself": "Ray jobs that failed by themselves",
              "survived": "Ray jobs that survived"}  # fmt: skip
    found = []
    for fate, title in titles.items():
        names = [_short(job.job) for job in jobs if job.fate == fate]
        more = f" and {len(names) - SHOWN_JOBS} more" if len(names) > SHOWN_JOBS else ""
        if names:
            found.append((title, ", ".join(names[:SHOWN_JOBS]) + more))
    return found


def how_often(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count:,} times"


def worst(severities: list[Severity]) -> Severity:
    return max(severities, key=SEVERITIES.index, default="info")
