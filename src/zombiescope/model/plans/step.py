"""A step of a plan: a value that can be shown, sent, stored and compared.

    change   a command that changes the node: it says what it touches, its risk, its way back and how it is verified
    look     a command that only looks
    advice   what a person has to do; no command does it safely

A pattern says what should happen as data (`Act`: a kind and plain arguments). How that is done on the machine is an
action in remedy/, which puts it beside the same step: the value stays without powers wherever it is shown.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from zombiescope.base.text import printable

State = Literal["planned", "applied", "failed", "undone", "skipped"]
Kind = Literal["change", "look", "advice"]
Part = Literal["look", "stop-gap", "lasting", "last-resort"]
"""look: before anything is done; stop-gap: the damage gets smaller now; lasting: the cause is gone; last-resort: a
person decides."""

MOST_TOUCHED = 20
"""Lines that say what a step will touch; a machine may have thousands."""
LONGEST_LINE = 300


@runtime_checkable
class Action(Protocol):
    """One way to change the machine; see remedy/actions."""

    @property
    def kind(self) -> str:
        """The name under which the log and a plan know it: "unit.disable"."""

    def arguments(self) -> dict[str, Any]:
        """What it was made of, as JSON."""

    def command(self) -> tuple[str, ...] | None:
        """What a person would type for the same, as words; None where no one command does it."""

    def touches(self) -> tuple[str, ...]:
        """What it will change, as the machine is now. Raises ActionFailedError where it cannot be done at all: the
        unit is gone, systemd does not answer."""

    def before(self) -> dict[str, Any]:
        """What `undo` has to know, as JSON; read right before `apply`. Raises ActionFailedError."""

    def is_applied(self) -> bool:
        """Whether the machine is already as it would be afterwards, whoever did it. Raises ActionFailedError."""

    def apply(self) -> None:
        """Raises ActionFailedError."""

    def undo(self, before: Mapping[str, Any]) -> None:
        """Back to what `before` said. Raises ActionFailedError."""


@dataclass(frozen=True, slots=True)
class Act:
    """What a step does, for a program: `fix` knows how each kind is done and undone on the node."""

    kind: str
    """ "unit.disable"."""
    arguments: tuple[tuple[str, str], ...]

    @property
    def subject(self) -> str:
        """What it is done to: a unit, a container, a file."""
        known = dict(self.arguments)
        return known.get("unit") or known.get("name") or known.get("path") or ""


RELEASE = "zombies.release"
"""An Act whose arguments are the places of removed cgroups that the evidence names; what keeps them is found out on the
node, and becomes steps there. Without a place nothing is released."""


@dataclass(frozen=True, slots=True)
class Step:
    id: str
    """Unique in its plan and the same whenever the plan is made again: "unit.disable:ecs.service"."""
    kind: Kind
    does: str
    """One plain sentence."""
    command: str | None = None
    """As it can be pasted; None for advice, and where no one command does it."""
    touches: tuple[str, ...] = ()
    risk: str = ""
    undo: str = ""
    """The command that takes it back; or in words why nothing needs to, or nothing can."""
    verify: str = ""
    """How to see that it worked."""
    part: Part = "lasting"
    state: State = "planned"
    why: str = ""
    """Of the state: why it failed or was skipped."""
    action: Action | None = None
    """How it is done on this machine; only where remedy/ has looked at it."""
    protects: str | None = None
    """The unit or container that must be named with --force-unit before this is done; None where nothing has to."""
    act: Act | None = None
    """What `fix` can do of it; None where only a person can."""

    @property
    def line(self) -> str:
        """What is pasted; else what is read."""
        return self.does if self.command is None else self.command

    def __str__(self) -> str:
        """The same, with what a look is for behind it."""
        return f"{self.line}   # {self.does}" if self.kind == "look" and self.does != self.line else self.line

    @property
    def details(self) -> tuple[tuple[str, str], ...]:
        """What is to be said below its line, each with its name; nothing for what only looks or is only said."""
        said = [("does", self.does)] if self.kind == "change" and self.command is not None else []
        named = [*said, *(("touches", line) for line in self.touches), ("risk", self.risk), ("undo", self.undo)]
        named += [("verify", self.verify), ("note", self.why)]
        return tuple((name, text) for name, text in named if text)

    def document(self) -> dict[str, Any]:
        """The same in every JSON that holds a plan."""
        return {
            "id": self.id, "kind": self.kind, "part": self.part, "does": self.does, "command": self.command,
            "touches": list(self.touches), "risk": self.risk, "undo": self.undo, "verify": self.verify,
            "state": self.state, "why": self.why, "protected": self.protects,
            "applicable": self.action is not None or bool(self.act and self.act.arguments and self.state != "skipped"),
        }  # fmt: skip


# --- what patterns make them with ------------------------------------------------------------------------------------


def command(line: str, does: str = "") -> Step:
    """One that only looks."""
    if not line.isprintable():
        return _no_command(line)
    return Step("", "look", printable(does) or line, line, part="look")


def change(
    line: str, does: str, *, touches: str, risk: str, undo: str, verify: str, part: Part = "lasting",
    act: Act | None = None,
) -> Step:  # fmt: skip
    """A command that changes the node."""
    if not (does and touches and risk and undo and verify):
        raise ValueError(f"a change says what it does, touches and risks, how it is undone and how verified: {line}")
    if not all(map(str.isprintable, (line, undo, verify))):
        return _no_command(line)
    what = (printable(touches),)
    return Step("", "change", printable(does), line, what, printable(risk), undo, verify, part, act=act)


def advice(does: str, part: Part = "lasting") -> Step:
    """What a person has to do."""
    return Step("", "advice", printable(does), part=part)


def note(text: str) -> Step:
    """What to know before anything is done: it ends nothing by itself."""
    return advice(text, "look")


def _no_command(line: str) -> Step:
    """A line break or an escape sequence in a name: quoted it would be one word, and pasted it is still a trap."""
    return note(f"no command is given, because a name in it cannot be printed: {line}")


# --- names that others chose -----------------------------------------------------------------------------------------


def quoted(words: tuple[str, ...] | None) -> str | None:
    """A command line on one line, each word of which stays one. None where a name in it could not be pasted."""
    if words is None:
        return None
    line = shlex.join(words)
    return line if line.isprintable() else None


def bounded(lines: list[str], most: int = MOST_TOUCHED) -> tuple[str, ...]:
    """Names that others chose, made harmless; a long list says how much is left out."""
    shown = [printable(line)[:LONGEST_LINE] for line in lines[:most]]
    return (*shown, f"and {len(lines) - most:,} more") if len(lines) > most else tuple(shown)
