"""What goes into a frozen page: of a diagnosis, or of a window that was looked at.

A diagnosis takes all of its window as documents and as a coarse strip, and the seconds around its incidents in full:
every core by the second, and samples. A heat map or a flame graph takes its window.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.report.document import document as diagnosis_document
from zombiescope.diagnosis.report.markdown import markdown
from zombiescope.documents import cgroups as cgroup_documents
from zombiescope.documents import containers as container_documents
from zombiescope.documents import fix as fix_documents
from zombiescope.documents import history as history_documents
from zombiescope.documents import info as info_documents
from zombiescope.documents import lanes as lane_documents
from zombiescope.documents import strip as strip_documents
from zombiescope.documents import worst as worst_documents
from zombiescope.documents.flamegraph import Reference
from zombiescope.query import heatmap, python_frames, sample_table
from zombiescope.query.history import history
from zombiescope.query.selection import Selection
from zombiescope.questions.window import Window
from zombiescope.store.reader import Recording
from zombiescope.web.frozen import Built, EmbeddedDocuments, assembled, packed_samples, room_bytes

AROUND_US = 30_000_000
MOST_SHOWN = 5
"""Incidents with every second and every sample; of the others the coarse strip and the words are there."""
MOST_CELLS = 60_000
MOST_COLUMNS = 900
MOST_CONTAINERS = 50
MOST_POINTS = 400
_DAYS_US = 30 * 86_400_000_000
_KEY = "frozen"


def of_diagnosis(recording: Recording, found: Diagnosis, heading: str, window: Window) -> str:
    """Raises NotBuiltError."""
    built = Built.found()
    text = markdown(found, heading, lambda at_us: window.clock(at_us, 1))
    window = _recorded(recording, window)
    answers = _answers(recording, heading, window)
    answers.put("incidents", diagnosis_document(found))
    for each in found.incidents[:MOST_SHOWN]:
        answers.put(f"fixes/{each.id}", fix_documents.answer(f"incident:{each.id}"))
    spans = _spans(found, window)
    for number, span in enumerate(spans, 1):
        fine = Window(*span, window.zone)
        answers.put(f"strip {number}", strip_documents.columns(recording, fine, (span[1] - span[0]) // 1_000_000 + 1))
    samples = None
    if spans:
        known = python_frames.load(recording, spans)
        held = [Selection(recording, *span, known=known) for span in spans]
        table = sample_table.build(held, room_bytes(built, answers, text), _size)
        samples = packed_samples(table)
    opens = {"page": "incidents"}
    if len(found.incidents) == 1:
        opens = {"page": "incident", "id": found.incidents[0].id}
    return assembled(built, heading, urlencode(opens), answers, samples, text)


def of_selection(
    selection: Selection,
    heading: str,
    window: Window,
    opens: dict[str, str],
    *,
    rows: int = heatmap.DEFAULT_ROWS,
    base: Reference | None = None,
) -> str:
    """Raises NotBuiltError."""
    built = Built.found()
    window = Window(selection.start_us, max(selection.end_us, selection.start_us + 1), window.zone)
    answers = _answers(selection.recording, heading, window)
    table = sample_table.build(
        [selection], room_bytes(built, answers), _size, rows=rows, base=None if base is None else base.counts
    )
    opens = {"page": "node", **opens}
    if base is not None:
        span = (base.window.start_us / 1e6, base.window.end_us / 1e6)
        table.scalars["base_span"] = span
        opens["cmp"] = "{:.3f}..{:.3f}".format(*span)
    return assembled(built, heading, urlencode(opens), answers, packed_samples(table), rows=rows)


def _size(table: sample_table.SampleTable) -> int:
    return len(packed_samples(table))


def _recorded(recording: Recording, window: Window) -> Window:
    """The part of the window in which there was a recording."""
    start_us = max(window.start_us, recording.start_us)
    return Window(start_us, max(start_us + 1, min(window.end_us, recording.end_us + 1)), window.zone)


def _answers(recording: Recording, heading: str, window: Window) -> EmbeddedDocuments:
    answers = EmbeddedDocuments()
    about = _info(recording, window)
    answers.put("info", about)
    entry = {name: about[name] for name in ("node", "from", "to", "live")}
    answers.put(
        "recordings", {"recordings": [{"key": _KEY, "title": heading, "note": "frozen into this file", **entry}]}
    )
    columns = max(60, min(MOST_COLUMNS, MOST_CELLS // max(1, int(about["cpus"] or 1))))
    answers.put("strip", strip_documents.columns(recording, window, columns))
    answers.put("lanes", lane_documents.document(recording, window, MOST_POINTS))
    answers.put("worst", worst_documents.document(recording, window))
    answers.put("cgroups", cgroup_documents.at_end_of(recording, window))
    answers.put("containers", container_documents.of_window(recording, window, MOST_CONTAINERS).document())
    points = history(recording, window.end_us - _DAYS_US, window.end_us, _step_us())
    answers.put("history", history_documents.document(recording.name, points))
    answers.put("audit", {"available": False, "why": "This file was made of a recording; no machine was looked at."})
    return answers


def _step_us() -> int:
    """Of a point of the month: as many as can be told apart in a picture."""
    return _DAYS_US // MOST_POINTS // 60_000_000 * 60_000_000


def _info(recording: Recording, window: Window) -> dict[str, Any]:
    """Of the window, as if that were all of the recording."""
    found = info_documents.for_page(recording, live=False, note="frozen into this file", window=window)
    found["gaps"] = [
        gap for gap in found["gaps"] if gap["from"] * 1e6 < window.end_us and gap["to"] * 1e6 > window.start_us
    ]
    return found | {"from": window.start_us / 1e6, "to": window.end_us / 1e6}


def _spans(found: Diagnosis, window: Window) -> list[tuple[int, int]]:
    """The seconds around the worst incidents, whole and without overlaps, in the order of time."""
    around = sorted(
        (max(each.from_us - AROUND_US, window.start_us), min(each.to_us + AROUND_US, window.end_us))
        for each in found.incidents[:MOST_SHOWN]
    )
    merged: list[tuple[int, int]] = []
    for start, end in around:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged
