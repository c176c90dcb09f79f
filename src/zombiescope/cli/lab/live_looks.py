"""What the live doctor would have said of a recording, and when: its frames are written again, and it looks meanwhile.

The recorder's alarm is left out: here it looks every few seconds from the onset on. So the time to a named cause is
that of the diagnosis, and what the alarm adds before the first look is not in it.
"""

from __future__ import annotations

import io
import tempfile
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zombiescope.lab import verdict
from zombiescope.lab.frame_replay import FrameReplay
from zombiescope.lab.verdict import Document

if TYPE_CHECKING:
    from zombiescope.lab.scenario import Scenario

LOOK_EVERY_US = 2_000_000
_JITTER_US = 100_000
BEFORE_US = 30_000_000
"""A look begins so long before the onset, as the recorder's does."""
LATER_S = 60.0


@dataclass(frozen=True, slots=True)
class LiveLooks:
    named_s: float | None
    """From the onset until the right pattern and culprit were known; None: never."""
    alarms: tuple[Document, ...]
    """Everything that was a warning or worse at any look, also what was taken back."""
    looks: int


def live_looks(source: Path, scenario: Scenario, from_us: int, to_us: int) -> LiveLooks:
    """`source` is the node's directory, all of it in the log; it hurts from `from_us` to `to_us`."""
    from zombiescope.diagnosis.live import look
    from zombiescope.diagnosis.order import worst_first

    said: dict[str, Document] = {}
    looks = 0
    with tempfile.TemporaryDirectory(prefix="zombiescope-lab-live-") as temporary:
        replay = FrameReplay(source, Path(temporary) / "node=live")
        for now_us in _moments(replay.ticks_us, from_us):
            replay.write_until(now_us)
            with redirect_stderr(io.StringIO()):  # it announces what it finds
                known = look(replay.node_dir, from_us - BEFORE_US).known
            looks += 1
            said |= {str(one["id"]): one for one in known if one["severity"] != "info"}
            found = verdict.best_match(scenario, worst_first(known), from_us / 1e6, now_us / 1e6 + LATER_S)
            right = verdict.right_pattern(scenario, found) and verdict.right_culprit(scenario, found)
            if scenario.kind == "fault" and right:
                return LiveLooks((now_us - from_us) / 1e6, tuple(said.values()), looks)
            if now_us > to_us + LOOK_EVERY_US:
                break
    return LiveLooks(None, tuple(said.values()), looks)


def _moments(ticks_us: list[int], from_us: int) -> list[int]:
    """Ticks after the onset that are at least a look apart."""
    found: list[int] = []
    for tick_us in ticks_us:
        if tick_us > from_us and (not found or tick_us - found[-1] >= LOOK_EVERY_US - _JITTER_US):
            found.append(tick_us)
    return found
