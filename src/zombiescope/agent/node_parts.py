"""Every part that works for this node, whichever process it is in, and which of them decide whether the node is ready.

The recorder publishes its parts in a heartbeat file on a tmpfs, and so do the agent's services (store/health.py).
Of its own services this process knows more than the file, and of the recorder's end the supervisor does.

Reading costs a few small files in memory: a scrape may do it, and a disk that hangs does not hold it up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from zombiescope.agent.health import Health
from zombiescope.base.secrets import mask_text
from zombiescope.base.text import printable
from zombiescope.store import health
from zombiescope.store.health import DISK_WRITER, LIVE_DIAGNOSIS, RECORDER, Part

SERVICES, SUPERVISOR = "agent services", "agent supervisor"
VITAL = (RECORDER, DISK_WRITER, LIVE_DIAGNOSIS)
"""A node on which one of these has failed or hangs is not ready: nothing is recorded, or nothing is diagnosed. Of every
other part that fails, /readyz says so and stays ready: the rest of the node is still measured and diagnosed."""
VITAL_SOURCES = ("disk",)
"""The same, as node.json names what cannot be used."""
BAD: tuple[health.State, ...] = ("failed", "hung")
_NO_REASON = {"failed": "has failed", "hung": "hangs"}
_PROCESSES = (RECORDER, SERVICES, SUPERVISOR)


def read(node_dir: Path, own: Health, places: Sequence[Path] | None = None) -> list[Part]:
    """One of each name, the recorder first."""
    found: dict[str, Part] = {}
    for part in health.parts_of(node_dir, places):
        # A file that a dead process left behind hides nobody who works.
        if part.name not in found or found[part.name].state in BAD:
            found[part.name] = part
    found |= {part.name: part for part in own.parts()}
    _take_supervisors_word(found, own)
    return [_safe(part) for part in sorted(found.values(), key=lambda part: part.name != RECORDER)]


def news(node_dir: Path, own: Health) -> list[Part]:
    """As `read`, for those who report each failure once."""
    return causes(read(node_dir, own), own)


def causes(parts: list[Part], own: Health) -> list[Part]:
    """Without parts of which nothing is known because the recorder is down: one death is one report."""
    if not any(part.name == RECORDER and part.state in BAD for part in parts):
        return parts
    services = own.conditions().keys()
    return [part for part in parts if part.name in (RECORDER, SERVICES) or part.name in services]


def _take_supervisors_word(found: dict[str, Part], own: Health) -> None:
    """It knows at once when the recorder ends, how, and how often that was."""
    known = found.get(RECORDER)
    if own.recorder_down is not None:
        known = replace(known or Part(RECORDER, "failed", time.time()), state="failed", why=own.recorder_down)
    if known is not None:
        found[RECORDER] = replace(known, failures=known.failures + own.recorder_restarts)


def _safe(part: Part) -> Part:
    """What a part says of itself may quote a command line or an address."""
    return replace(part, why=printable(mask_text(part.why)), fix=printable(part.fix))


def brief(part: Part) -> str:
    """GPU reader crashed: SIGSEGV; nvidia-smi says more."""
    return f"{part.name} {part.why or _NO_REASON.get(part.state, part.state)}" + (f"; {part.fix}" if part.fix else "")


def helper_bytes(parts: Iterable[Part]) -> int | None:
    """Resident memory of the recorder's helper processes; None while none is measured."""
    parts = list(parts)
    others = {part.pid for part in parts if part.name in _PROCESSES} | {os.getpid(), os.getppid(), None}
    measured = {part.pid: part.rss_bytes for part in parts if part.pid not in others and part.rss_bytes is not None}
    return sum(measured.values()) if measured else None
