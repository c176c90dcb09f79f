"""What a diagnosis says: incidents, each with its symptoms, its causes (best first) and what was ruled out.

These are values between layers: detectors make symptoms, patterns make causes, reports print them. Every number that
stands in a chain says where it was read, so that a reader can look for himself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from zombiescope._severity import SEVERITIES, Severity
from zombiescope._text import printable
from zombiescope.diagnosis.symptom import Symptom

Proof = Literal["kernel", "golden", "literature"]
State = Literal["open", "closed"]

KNOWN: dict[Proof, str] = {
    "kernel": "seen on a real kernel",
    "golden": "known from a documented case",
    "literature": "known only from literature",
}
"""How we know a pattern, as every report says it."""

MOST_OF_A_NAME = 120

NOTHING_FOUND = "no problem was found in this window, as far as it was recorded"
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
    cores: float | None = None
    baseline_cores: float | None = None
    """In its busier hours of the last thirty days."""
    cpu_ratio: float | None = None
    baseline_cpu_ratio: float | None = None

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
            return f"pod {_short(self.namespace)}/{_short(self.pod)}"
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
class FixStep:
    """Of a fix: a command to paste, with what it is for; or advice, in words.

    A command that only looks has no more than that. One that changes the node says what it touches, how it is undone
    and how to see that it worked; without all three it cannot be made.
    """

    kind: Literal["command", "advice"]
    text: str
    comment: str = ""
    touches: str = ""
    """What it changes, in words: empty where it changes nothing."""
    undo: str = ""
    """The command that takes it back; or in words why nothing needs to, or nothing can."""
    check: str = ""
    """The command that shows whether it worked."""

    @property
    def details(self) -> tuple[tuple[str, str], ...]:
        """What it touches, its undo and its check, each with its name; nothing for what only looks."""
        named = (("touches", self.touches), ("undo", self.undo), ("check", self.check))
        return tuple((name, text) for name, text in named if text)

    def __str__(self) -> str:
        return f"{self.text}   # {self.comment}" if self.comment else self.text


def command(text: str, comment: str = "") -> FixStep:
    """One that only looks."""
    return FixStep("command", text, printable(comment)) if text.isprintable() else _no_command(text)


def change(text: str, comment: str = "", *, touches: str, undo: str, check: str) -> FixStep:
    """A command that changes the node."""
    if not (touches and undo and check):
        raise ValueError(f"a change says what it touches, how it is undone and how it is checked: {text}")
    if not all(map(str.isprintable, (text, undo, check))):
        return _no_command(text)
    return FixStep("command", text, printable(comment), printable(touches), undo, check)


def advice(text: str) -> FixStep:
    return FixStep("advice", printable(text))


def _no_command(text: str) -> FixStep:
    """A line break or an escape sequence in a name: quoted it would be one word, and pasted it is still a trap."""
    return advice(f"no command is given, because a name in it cannot be printed: {text}")


@dataclass(frozen=True, slots=True)
class Fix:
    summary: str
    steps: tuple[FixStep, ...] = ()


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


@dataclass(frozen=True, slots=True)
class RuledOut:
    pattern: str
    because: str
    value: float | int | str | None = None
    value_unit: str | None = None


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

    @property
    def seconds(self) -> float:
        return (self.to_us - self.from_us) / 1e6


def how_often(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count:,} times"


def worst(severities: list[Severity]) -> Severity:
    return max(severities, key=SEVERITIES.index, default="info")
