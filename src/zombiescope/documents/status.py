"""Which recorders run here, how they are doing, and whether every part of them is alive.

A recorder that was killed is in the list too: it died, and nobody started it again. What hangs or fails now is blind
now: the recording itself says so only when its segment ends."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zombiescope.store import health, incident_file, locate
from zombiescope.store.core_lists import LEFT_OUT, listed
from zombiescope.store.health import Part

if TYPE_CHECKING:
    from zombiescope.store.reader import Recording

_COST_SPAN_US = 600 * 1_000_000
_WELL = ("ok", "off")


@dataclass(frozen=True, slots=True)
class Status:
    document: dict[str, Any]
    unread: tuple[tuple[str, Exception], ...] = ()
    """The recordings of which only the recorder's own word is known, and why."""

    @property
    def is_well(self) -> bool:
        """Whether no part of any recorder is known to have failed, or to hang."""
        parts = [part for recorder in self.document["recorders"] for part in recorder["parts"]]
        return all(part["state"] in _WELL for part in parts)


def answer(directory: Path | None = None) -> Status:
    """Of all recorders, or of those that write into a directory. The longest running one is the document itself, and
    with all others in its `recorders`."""
    unread = []
    recorders = []
    for recorder in locate.running_recorders():
        if directory is not None and not _same(recorder.recording, directory):
            continue
        parts = health.parts_of(recorder.node_dir)
        known = _running(recorder, parts)
        why = _add_measured(known, recorder, parts)
        if why is not None:
            unread.append((str(recorder.recording), why))
        recorders.append(known)
    alive = {recorder["recording"] + recorder["node"] for recorder in recorders}
    dead = [_died(*death) for death in health.deaths() if directory is None or _same(death[0].parent, directory)]
    recorders += [one for one in dead if one["recording"] + one["node"] not in alive]
    first = recorders[0] if recorders else _not_running()
    return Status({**first, "recorders": recorders}, tuple(unread))


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one == other


def _not_running() -> dict[str, Any]:
    absent = ("pid", "recording", "node", "timezone", "since", "until", "cost", "bytes", "died")
    lists: dict[str, list[Any]] = {name: [] for name in ("gaps", "missing", "left_out", "incidents", "parts")}
    return {"running": False, **dict.fromkeys(absent), **lists}


def _died(node_dir: Path, recorder: Part) -> dict[str, Any]:
    """One that was killed, and that nobody started again."""
    return _not_running() | {
        "pid": recorder.pid,
        "recording": str(node_dir.parent),
        "node": node_dir.name.removeprefix("node="),
        "died": recorder.since,
        "parts": [asdict(part) for part in health.parts_of(node_dir)],
    }


def _running(recorder: locate.RunningRecorder, parts: list[Part]) -> dict[str, Any]:
    """What it says of itself; the rest is in what it wrote."""
    return _not_running() | {
        "running": True,
        "pid": recorder.pid,
        "recording": str(recorder.recording),
        "node": recorder.node,
        "since": recorder.started_us / 1e6,
        "gaps": _gaps_now(parts),
        "parts": [asdict(part) for part in parts],
    }


def _gaps_now(parts: list[Part]) -> list[dict[str, Any]]:
    now = time.time()
    bad = [part for part in parts if part.state not in _WELL]
    return [{"from": part.since, "to": now, "source": part.name, "why": part.why} for part in bad]


def _add_measured(known: dict[str, Any], recorder: locate.RunningRecorder, parts: list[Part]) -> Exception | None:
    """Adds what is in its recording; why that cannot be read. Nothing loads pyarrow where nobody records."""
    from zombiescope.store.reader import open_recording
    from zombiescope.store.store import NotARecordingError

    try:
        with open_recording(recorder.recording, recorder.node) as recording:
            known |= _measured(recorder, recording, parts)
    except (NotARecordingError, OSError) as error:
        return error
    return None


def _measured(recorder: locate.RunningRecorder, recording: Recording, parts: list[Part]) -> dict[str, Any]:
    from zombiescope.query.cost import recorder_cost

    end_us = recording.end_us
    cost = recorder_cost(recording, max(end_us - _COST_SPAN_US, recorder.started_us), end_us + 1)
    gaps = recording.gaps(recorder.started_us)
    return {
        "timezone": recording.node.get("timezone"),
        "until": end_us / 1e6 if end_us else None,
        "bytes": recording.size_bytes,
        "cost": None if cost is None else {**asdict(cost), "helpers_rss_bytes": _helpers_bytes(parts)},
        "gaps": [
            *({"from": gap.from_us / 1e6, "to": gap.to_us / 1e6, "source": gap.source, "why": gap.why} for gap in gaps),
            *_gaps_now(parts),
        ],
        "missing": recording.node.get("missing") or [],
        "left_out": sorted(listed(recording.node, LEFT_OUT)),
        "incidents": _incidents(recorder, recording),
    }


def _helpers_bytes(parts: list[Part]) -> int:
    return sum(part.rss_bytes or 0 for part in parts if part.name != health.RECORDER)


def _incidents(recorder: locate.RunningRecorder, recording: Recording) -> list[dict[str, Any]]:
    """Those of this run: the open ones first, the worst of them first; then those that are over, the newest first."""
    known = incident_file.read(recorder.recording / recording.prefix)
    still_open = [entry for entry in known if entry.get("state") == "open"]
    since_s = recorder.started_us / 1e6
    over = [entry for entry in known if entry.get("state") != "open" and float(entry.get("to") or 0) >= since_s]
    return [*_in_order(still_open), *sorted(over, key=lambda entry: -float(entry.get("to") or 0))]


def _in_order(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The worst first. Whoever orders them loads the whole diagnosis, which takes half a minute on a loaded machine."""
    if len(entries) < 2:
        return entries
    from zombiescope.diagnosis.order import worst_first

    return worst_first(entries)
