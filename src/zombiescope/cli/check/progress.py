"""What a person sees while the seconds run: how many are left, and the cores. On stderr, and only on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from zombiescope.cli import output
from zombiescope.cli.failure import Failure
from zombiescope.cli.private_recorder import PrivateRecorder

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from zombiescope.query.recent import Recent

_STEP_S = 0.25
_OVERTIME_S = 60.0
_INDENT = " " * 9


def wait(recorder: PrivateRecorder, for_s: float) -> None:
    """Until the recorder has ended by itself. Raises Failure when it does not, or ended badly."""
    console = output.console(stderr=True)
    if console.is_terminal and not console.is_dumb_terminal:
        _show(recorder, for_s, console)
    else:
        _until_ended(recorder, for_s, lambda _: None)


def _until_ended(recorder: PrivateRecorder, for_s: float, step: Callable[[float], None]) -> None:
    end = time.monotonic() + for_s
    while not recorder.ended():
        left_s = end - time.monotonic()
        if left_s < -_OVERTIME_S:
            raise Failure(f"the recorder did not end within {for_s + _OVERTIME_S:.0f} s", "is this machine out of CPU?")
        step(max(0.0, left_s))
        time.sleep(_STEP_S)


def _show(recorder: PrivateRecorder, for_s: float, console: Console) -> None:
    from rich.live import Live

    from zombiescope.cli.top.feed import LiveFeed

    feed = LiveFeed(recorder.node_dir)
    try:
        with Live(console=console, transient=True, auto_refresh=False) as live:

            def step(left_s: float) -> None:
                feed.poll()
                live.update(picture(str(feed.node.get("node", "?")), feed.recent, left_s, for_s, console), refresh=True)

            _until_ended(recorder, for_s, step)
    finally:
        feed.close()


def picture(node: str, recent: Recent, left_s: float, for_s: float, console: Console) -> Text:
    """A bar that fills, the mean, the hottest core, and every core as one character."""
    from rich.text import Text

    from zombiescope.cli.top.strips import heat_row, level, strip

    width = max(20, console.width)
    bar = max(8, min(40, width - 40))
    done = bar - round(bar * min(1.0, left_s / for_s))
    said = f"{left_s:2.0f} s left" if left_s else "reading"
    lines = [Text.assemble((f" looking at {node}  ", "bold"), ("━" * done, "green"), ("─" * (bar - done), "dim"))]
    lines[0].append(f"  {said}", "bold")
    hottest = recent.hottest()
    if hottest is not None and recent.ticks:
        space = max(1, min(60, width - 26))
        slots = recent.slots(space)
        averages = [tick.average() if tick is not None else None for tick in slots]
        hot = [tick.cores.get(hottest.cpu) if tick is not None else None for tick in slots]
        for name, cells in (("average", averages), (f"core {hottest.cpu}", hot)):
            cut = cells[-space:]
            lines.append(Text(f" {name}".ljust(11)).append_text(strip(cut, len(cut))).append_text(level(cut[-1])))
        newest = recent.ticks[-1].cores
        cpus = sorted(newest)
        per_row = max(8, width - 12)
        lines += [
            Text(" all".ljust(11) if not first else " " * 11).append_text(
                heat_row(newest[cpu] for cpu in cpus[first : first + per_row])
            )
            for first in range(0, len(cpus), per_row)
        ]
    text = Text("\n").join(lines)
    text.no_wrap, text.overflow = True, "crop"
    return text
