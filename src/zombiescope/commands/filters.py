"""The options that choose samples, the same on every command that reads stacks. profile/selection.py says what they
mean; each may be given several times, and then any of the values will do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.commands.groups import OptionGroup

if TYPE_CHECKING:
    from zombiescope.profile.selection import Filters, Mode

_PANEL = "Filters"
_CPUS = re.compile(r"(\d+)(?:-(\d+))?")
_MAX_CPU = 65_535


def _option(name: str, metavar: str, help_: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        name, metavar=metavar, help=help_, rich_help_panel=_PANEL, show_default=False
    )
    return option


Cpu = Annotated[list[str] | None, _option("--cpu", "LIST", "On these cores: 3, or 0-3,8.")]
Pid = Annotated[list[int] | None, _option("--pid", "N", "Of this process.")]
Tid = Annotated[list[int] | None, _option("--tid", "N", "Of this thread.")]
Comm = Annotated[list[str] | None, _option("--comm", "NAME", "Of tasks of this name; * and ? match.")]
Unit = Annotated[list[str] | None, _option("--unit", "NAME", "Of this systemd unit; * and ? match.")]
Container = Annotated[
    list[str] | None, _option("--container", "ID", "Of this container; the start of the id is enough.")
]
Kernel = Annotated[
    bool | None,
    typer.Option(
        "--kernel/--user", help="Taken inside the kernel, or outside of it.", rich_help_panel=_PANEL, show_default=False
    ),
]
Match = Annotated[str | None, _option("--match", "RE", "With a frame in whose name the regular expression is found.")]
Event = Annotated[str | None, _option("--event", "NAME", "Samples of this event, where an import holds several.")]
Idle = Annotated[
    bool,
    typer.Option("--idle", help="Idle cores too, which an import keeps.", rich_help_panel=_PANEL, show_default=False),
]


@dataclass(frozen=True)
class FilterOptions(OptionGroup):
    """The options that choose samples, as they were typed."""

    cpu: Cpu = None
    pid: Pid = None
    tid: Tid = None
    comm: Comm = None
    unit: Unit = None
    container: Container = None
    kernel: Kernel = None
    match: Match = None
    event: Event = None
    idle: Idle = False

    def chosen(self) -> Filters:
        """The filters that they mean. Raises typer.BadParameter."""
        return chosen(
            self.cpu, self.pid, self.tid, self.comm, self.unit, self.container, self.kernel, self.match, self.event,
            self.idle,
        )  # fmt: skip


def chosen(
    cpu: list[str] | None = None,
    pid: list[int] | None = None,
    tid: list[int] | None = None,
    comm: list[str] | None = None,
    unit: list[str] | None = None,
    container: list[str] | None = None,
    kernel: bool | None = None,
    match: str | None = None,
    event: str | None = None,
    idle: bool = False,
) -> Filters:
    """The filters that the options mean. Raises typer.BadParameter."""
    from zombiescope.profile.selection import Filters

    mode: Mode | None = None if kernel is None else "kernel" if kernel else "user"
    return Filters(
        frozenset(number for text in cpu or () for number in _cpus(text)),
        frozenset(pid or ()),
        frozenset(tid or ()),
        tuple(comm or ()),
        tuple(unit or ()),
        tuple(container or ()),
        mode,
        _pattern(match),
        event,
        idle,
    )


def _cpus(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _CPUS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last <= _MAX_CPU:
            raise typer.BadParameter(f"--cpu {text!r} is not a list of cores; write 3, or 0-3,8")
        found.update(range(first, last + 1))
    return found


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise typer.BadParameter(f"--match {text!r} is not a regular expression: {error}") from None


def words(filters: Filters) -> str:
    """The filters for a heading: "comm kubelet, in the kernel"; empty without any."""
    parts = [
        f"{name} {', '.join(map(str, sorted(values)))}"
        for name, values in (
            ("core", filters.cpus),
            ("pid", filters.pids),
            ("tid", filters.tids),
            ("comm", filters.comms),
            ("unit", filters.units),
            ("container", filters.containers),
        )
        if values
    ]
    if filters.mode is not None:
        parts.append("in the kernel" if filters.mode == "kernel" else "in user space")
    if filters.match is not None:
        parts.append(f"matching {filters.match.pattern}")
    if filters.event is not None:
        parts.append(f"event {filters.event}")
    return ", ".join(parts)
