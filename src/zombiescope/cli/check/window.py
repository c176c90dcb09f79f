"""The window itself: a private recorder runs for it, in memory, while the surroundings are watched."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from zombiescope.audit.surroundings import Surroundings, Watch
from zombiescope.base.missing import Missing
from zombiescope.cli import output
from zombiescope.cli.failure import Failure, one_line
from zombiescope.cli.private_recorder import PrivateRecorder, private_recorder
from zombiescope.diagnosis import patterns, symptoms
from zombiescope.diagnosis.check.check import Audited, Check
from zombiescope.diagnosis.check.examine import examine
from zombiescope.store.reader import open_recording

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from zombiescope.query.recent import Recent


INTERVAL_S = 0.5
"""Two ticks a second: a second of saturation is found wherever it begins."""


def look(for_s: float) -> Check:
    """Takes `for_s` seconds and a little more. Raises Failure when nothing could be seen at all."""
    symptoms.every(), patterns.every()
    with _terminated_in_order():
        watch = Watch(with_quotas=True)
        settings = {"for_s": for_s + INTERVAL_S, "interval_s": INTERVAL_S, "segment_s": for_s + 60.0}
        with private_recorder("check", **settings) as recorder:
            wait(recorder, for_s)
            surroundings = watch.end()
            with open_recording(recorder.home, temporary=True) as recording:
                check = examine(recording, surroundings, _audited(surroundings))
        if check is None:
            raise Failure("no core was measured: the recorder wrote no tick", "see 'zombiescope record --for 10s'")
        return check


def _audited(surroundings: Surroundings) -> Audited:
    try:
        from zombiescope import audit
        from zombiescope.audit.finding import MissingUntilBoot

        found = audit.examine(surroundings=surroundings)
        # What a boot would make is a question to an image; here it runs, or systemd does not.
        missing = tuple(one for one in found.missing if not isinstance(one, MissingUntilBoot))
        return Audited(found.findings, missing, found.running)
    except Exception as error:  # noqa: BLE001  what was seen in the window is worth showing all the same
        why = f"it broke off: {one_line(error)} ({type(error).__name__})"
        return Audited(missing=(Missing("audit", why, "'zombiescope audit' says more"),))


@contextmanager
def _terminated_in_order() -> Iterator[None]:
    """SIGTERM ends the recorder and removes its directory, as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# --- progress ---------------------------------------------------------------------------------------------------------
# What a person sees while the seconds run: how many are left, and the cores. On stderr, and only on a terminal.

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
