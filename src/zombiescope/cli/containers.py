"""`zombiescope containers`: what ran in containers, what of it restarts for ever, and who asked for it."""

from __future__ import annotations

from datetime import datetime
from textwrap import wrap
from typing import TYPE_CHECKING

from zombiescope.base.text import printable
from zombiescope.cli.output import Json, console, examples, note, print_document, table
from zombiescope.cli.quantities import human_count
from zombiescope.cli.recording_argument import Dir, Node, opened, recorded_range
from zombiescope.questions.views import ContainersQuestion

if TYPE_CHECKING:
    from rich.console import Console

    from zombiescope.documents.containers import ContainerList
    from zombiescope.query.container_families import Loop
    from zombiescope.query.containers import Container
    from zombiescope.questions.window import Window

EXAMPLES = examples(
    "containers --last 10m",
    "containers --pod 'kube-system/agent-*'   # whatever its suffix",
    "containers --image ecs-agent --json | jq '.families[0]'",
)

_SHOWN = 20
_LOOPS_SHOWN = 8
_WIDE = 100
_OTHERS = 52
"""Columns that a name leaves to the others."""
_IMAGE_WIDTH = 16
_BY_WIDTH = 28
_DETAIL_WIDTH = 200
_DAY_US = 86_400_000_000


def command(question: ContainersQuestion, directory: Dir = None, node: Node = None, json_: Json = False) -> None:
    """List the containers of a window, and those that crash-loop.

    Name, image, pod, start, exit code, restarts and owner. Containers that get a new id each time are counted as one
    family: the pods of a Deployment, or the runs of a loop.
    """
    with opened(directory, node) as recording:
        from zombiescope.documents.containers import answer

        found = answer(recording, question)
    if json_:
        print_document("containers", found.document())
    elif found.containers:
        _print(found)
    else:
        note(
            f"zombiescope: no container was seen in this window (recorded is {recorded_range()}); a recorder sees "
            "those that are made while it runs"
        )


def _print(found: ContainerList) -> None:
    out = console()
    out.print(f"{found.node}  {found.window.heading()}", style="bold")
    alive = sum(one.alive for one in found.containers)
    failed = sum(one.failed for one in found.containers)
    ended = len(found.containers) - alive
    bad = "" if not failed else ", all with an error" if failed == ended else f", {human_count(failed)} with an error"
    counts = f"{human_count(alive)} running, {human_count(ended)} exited{bad}"
    noun = "container" if len(found.containers) == 1 else "containers"
    out.print(f"{human_count(len(found.containers))} {noun}: {counts}")
    _print_loops(out, found.loops)
    if len(found.containers) > (found.top or _SHOWN) and found.top is None:
        _print_families(out, found)
    else:
        _print_containers(out, found)


# --- what restarts for ever ------------------------------------------------------------------------------------------


def _print_loops(out: Console, loops: list[Loop]) -> None:
    from rich.text import Text

    for certain, heading, style in (
        (True, "restarting without end", "bold red"),
        (False, "started often", "bold yellow"),
    ):
        chosen = [loop for loop in loops if loop.is_certain is certain]
        if chosen:
            out.print()
            out.print(heading, style=style)
        for loop in chosen[:_LOOPS_SHOWN]:
            for line in wrap(printable(loop.text()), max(30, out.width - 4), break_on_hyphens=False):
                out.print(Text(f"  {line}"))
            for line in _details(loop):
                out.print(Text(f"    {line}", "dim"))
        if len(chosen) > _LOOPS_SHOWN:
            out.print(f"  and {human_count(len(chosen) - _LOOPS_SHOWN)} more; --json has them all", style="dim")


def _details(loop: Loop) -> list[str]:
    """What the sentence does not say."""
    newest = loop.family.newest
    image = f"image {newest.image}" if newest.image and newest.image not in loop.text() else None
    policy = f"restart policy {newest.restart_policy}" if newest.restart_policy else None
    command = f"asked for with: {newest.requester_command}" if newest.requester_command else None
    about = ", ".join(part for part in (image, policy) if part)
    return [_cut(printable(line), _DETAIL_WIDTH) for line in (about, command) if line]


# --- tables ----------------------------------------------------------------------------------------------------------


def _print_families(out: Console, found: ContainerList) -> None:
    """Five hundred pods are forty Deployments."""
    loops = {id(loop.family) for loop in found.loops}
    rest = [family for family in found.families if id(family) not in loops]
    rest.sort(key=lambda family: (-family.failed, -family.starts, -family.alive, family.name))
    names = [_cut_middle(printable(family.label), _name_width(out)) for family in rest[:_SHOWN]]
    made = table("container", "image", "alive", "ended", "failed", "newest", right=("alive", "ended", "failed"))
    for name, family in zip(names, rest, strict=False):
        counts = (str(count or "") for count in (family.alive, family.exited, family.failed))
        image = _cut(printable(_short_image(family.image)), _IMAGE_WIDTH)
        made.add_row(name, image, *counts, _clock(family.newest.started_us, found.window))
    if rest:
        out.print()
        out.print(made)
    more = f"and {human_count(len(rest) - _SHOWN)} more; " if len(rest) > _SHOWN else ""
    out.print(f"{more}--top N lists them one by one, --json has them all", style="dim")


def _print_containers(out: Console, found: ContainerList) -> None:
    """Each container; of a loop, of which all is said above, the newest alone."""
    newest = {loop.family.newest.id for loop in found.loops}
    told = {identity for loop in found.loops for identity in loop.family.members} - newest
    rows = [one for one in found.containers if one.id not in told]
    shown = rows[: found.top or _SHOWN]
    wide = out.width >= _WIDE and any(one.requester or one.requester_unit or one.owner for one in shown)
    made = table("container", "image", "started", "ended", "starts", *(["asked for by"] * wide), right=("starts",))
    for one in shown:
        made.add_row(
            *_row(one, found.window, _name_width(out)), *_asker(one, wide), style="red" if one.failed else None
        )
    out.print()
    out.print(made)
    if len(rows) > len(shown):
        out.print(f"and {human_count(len(rows) - len(shown))} more; --json has them all", style="dim")


def _row(one: Container, window: Window, width: int) -> list[str]:
    code = "" if one.code is None else f" exit {one.code}"
    return [
        _cut_middle(printable(one.label), width),
        _cut(printable(_short_image(one.image)), _IMAGE_WIDTH),
        _clock(one.started_us, window),
        "" if one.alive or one.exited_us is None else f"{_clock(one.exited_us, window)}{code}",
        str(one.starts) if one.starts > 1 else "",
    ]


def _asker(one: Container, wide: bool) -> list[str]:
    from zombiescope.query.container_families import requester_words

    words = requester_words(one.requester, one.requester_unit) or one.owner or ""
    return [_cut(printable(words), _BY_WIDTH)] if wide else []


def _name_width(out: Console) -> int:
    """What the other columns leave."""
    return max(20, out.width - _OTHERS - (_BY_WIDTH if out.width >= _WIDE else 0))


def _clock(at_us: int | None, window: Window) -> str:
    """The time of day; for what is older than a day the day."""
    if at_us is None:
        return "?"
    if window.start_us - at_us < _DAY_US:
        return window.clock(at_us)
    return f"{datetime.fromtimestamp(at_us / 1e6, window.zone):%m-%d %H:%M}"


def _short_image(image: str | None) -> str:
    """Its last part: registries are long and all the same."""
    return (image or "").rpartition("/")[2].partition("@")[0]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _cut_middle(text: str, width: int) -> str:
    """A pod's name begins with its owner's and ends with the container's."""
    if len(text) <= width:
        return text
    end = width // 3
    return text[: width - 1 - end] + "…" + text[-end:]
