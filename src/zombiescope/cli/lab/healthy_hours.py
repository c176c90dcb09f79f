"""`zombiescope lab score --healthy-hour`: what the live doctor says in an hour of each healthy load at each width.

The recorded seconds of a load are put on all cores (`lab widen`) and laid end to end to an hour (lab/repetition.py).
The doctor looks meanwhile, each time at the last two minutes, as it does on a node; everything that was a warning or
worse at any look counts, also what it took back. The recorder's alarm, which would have asked for fewer looks, is left
out.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zombiescope.lab import verdict
from zombiescope.lab.score_hours import HOUR_S
from zombiescope.lab.verdict import Document

if TYPE_CHECKING:
    from zombiescope.lab.repetition import Repetition

LOOK_EVERY_US = 60_000_000
WINDOW_US = 120_000_000
"""However long something lasts, the live doctor looks at the last two minutes."""


def hours(backgrounds: Mapping[str, Path], widths: Sequence[int], seconds: float = HOUR_S) -> list[dict[str, Any]]:
    """Of each background at each width that is no less than its own."""
    from zombiescope.cli.lab import widths as wide
    from zombiescope.cli.lab.score import bar

    own = wide.widths_of(backgrounds.values())
    wanted = [
        (name, place, cores, wide.other_of(name, backgrounds, own))
        for cores in widths
        for name, place in backgrounds.items()
        if own[place] <= cores
    ]
    made = []
    with bar() as progress:
        task = progress.add_task("", total=len(wanted))
        for name, place, cores, other in wanted:
            progress.update(task, description=f"an hour of {name} on {cores} cores")
            made.append(hour(name, place, cores, seconds, other))
            progress.advance(task)
    return made


def hour(name: str, place: Path, cores: int, seconds: float = HOUR_S, other: Path | None = None) -> dict[str, Any]:
    """`other` is on the cores that are left; default: the load itself."""
    from zombiescope.cli.lab.widths import PACK, TOGETHER_S
    from zombiescope.lab.repetition import Repetition
    from zombiescope.lab.wide import widen
    from zombiescope.store.reader import open_recording

    other = other or place
    with open_recording(place) as recording, ExitStack() as stack:
        own = len(recording.node["cpus"]["online"])
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zombiescope-lab-hour-")))
        filling = [stack.enter_context(open_recording(other))] if own < cores else []
        widen(recording, filling, cores, temporary / "wide", apart_s=TOGETHER_S)
        wide = stack.enter_context(open_recording(temporary / "wide", temporary=True))
        turn = Repetition(wide)
        looks, said = _looked(turn, temporary / "node=hour", seconds)
    return {
        "scenario": name,
        "cores": cores,
        "recorded_cores": own,
        "beside": None if own == cores or other == place else other.name.removesuffix(PACK),
        "recorded_s": round(turn.seconds),
        "seconds": round(seconds),
        "looks": looks,
        "alarms": [{"severity": one["severity"], "from": one["from"], **verdict.claim(one)} for one in said],
    }


def _looked(turn: Repetition, node_dir: Path, seconds: float) -> tuple[int, list[Document]]:
    """How many looks there were, and everything that was a warning or worse at one of them."""
    from zombiescope.diagnosis.live import look

    said: dict[str, Document] = {}
    looks, due_us = 0, None
    for now_us in turn.write(node_dir, seconds):
        due_us = now_us + LOOK_EVERY_US if due_us is None else due_us
        if now_us < due_us:
            continue
        due_us += LOOK_EVERY_US
        with redirect_stderr(io.StringIO()):  # it announces what it finds
            known = look(node_dir, now_us - WINDOW_US).known
        looks += 1
        said |= {str(one["id"]): one for one in known if one["severity"] != "info"}
    return looks, list(said.values())
