"""The options that choose samples, the same on every command that reads stacks. profile/selection.py says what they
mean; each may be given several times, and then any of the values will do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.commands.groups import OptionGroup
from zombiescope.commands.usage import wrong_usage
from zombiescope.documents import filters
from zombiescope.documents.filters import words

__all__ = ["FilterOptions", "words"]

if TYPE_CHECKING:
    from zombiescope.profile.selection import Filters

_PANEL = "Filters"


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
        with wrong_usage():
            return filters.chosen(
                self.cpu, self.pid, self.tid, self.comm, self.unit, self.container, self.kernel, self.match,
                self.event, self.idle,
            )  # fmt: skip
