"""Which recorders run here, and how they are doing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from zombiescope.recording import incident_file, locate
from zombiescope.recording.core_lists import LEFT_OUT, listed
from zombiescope.recording.reader import Recording, open_recording
from zombiescope.recording.store import NotARecordingError
from zombiescope.views.cost import recorder_cost

_COST_SPAN_US = 600 * 1_000_000


@dataclass(frozen=True, slots=True)
class Status:
    document: dict[str, Any]
    unread: tuple[tuple[str, Exception], ...] = ()
    """The recordings of which only the recorder's own word is known, and why."""


def answer(directory: Path | None = None) -> Status:
    """Of all recorders, or of those that write into a directory. The longest running one is the document itself, and
    with all others in its `recorders`."""
    unread = []
    recorders = []
    for recorder in locate.running_recorders():
        if directory is not None and not _same(recorder.recording, directory):
            continue
        known = _running(recorder)
        try:
            with open_recording(recorder.recording, recorder.node) as recording:
                known |= _measured(recorder, recording)
        except (NotARecordingError, OSError) as error:
            unread.append((str(recorder.recording), error))
        recorders.append(known)
    first = recorders[0] if recorders else _not_running()
    return Status({**first, "recorders": recorders}, tuple(unread))


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one == other


def _not_running() -> dict[str, Any]:
    absent = ("pid", "recording", "node", "timezone", "since", "until", "cost", "bytes")
    return {"running": False, **dict.fromkeys(absent), "gaps": [], "missing": [], "left_out": [], "incidents": []}


def _running(recorder: locate.RunningRecorder) -> dict[str, Any]:
    """What it says of itself; the rest is in what it wrote."""
    return _not_running() | {
        "running": True,
        "pid": recorder.pid,
        "recording": str(recorder.recording),
        "node": recorder.node,
        "since": recorder.started_us / 1e6,
    }


def _measured(recorder: locate.RunningRecorder, recording: Recording) -> dict[str, Any]:
    end_us = recording.end_us
    cost = recorder_cost(recording, max(end_us - _COST_SPAN_US, recorder.started_us), end_us + 1)
    gaps = recording.gaps(recorder.started_us)
    return {
        "timezone": recording.node.get("timezone"),
        "until": end_us / 1e6 if end_us else None,
        "bytes": recording.size_bytes,
        "cost": None if cost is None else asdict(cost),
        "gaps": [
            {"from": gap.from_us / 1e6, "to": gap.to_us / 1e6, "source": gap.source, "why": gap.why} for gap in gaps
        ],
        "missing": recording.node.get("missing") or [],
        "left_out": sorted(listed(recording.node, LEFT_OUT)),
        "incidents": _incidents(recorder, recording),
    }


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
