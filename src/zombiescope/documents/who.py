"""Who ran in a window, as a table and as tracks over time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from zombiescope.documents.columns import Columns
from zombiescope.documents.selection import Load, Profile, load_stacks, profile
from zombiescope.query import who
from zombiescope.query.levels import Level
from zombiescope.query.rate import rate
from zombiescope.query.who import WhoRan
from zombiescope.questions.views import TracksQuestion, WhoQuestion
from zombiescope.store.reader import Recording


def answer(recording: Recording, question: WhoQuestion, load: Load = load_stacks) -> dict[str, Any]:
    """Raises QuestionError."""
    found = profile(recording, question, load)
    ran = who.who_ran(found.selection, question.by, question.top)
    return {
        "node": recording.name,
        "from": found.window.start_us / 1e6,
        "to": found.window.end_us / 1e6,
        "by": question.by,
        "total": ran.total,
        "others": {"groups": ran.others, "samples": ran.other_samples},
        "who": table(ran),
    }


def table(ran: WhoRan) -> list[dict[str, Any]]:
    """The same rows in `stacks`, on the page and in its file."""
    return [
        {
            **asdict(each.group),
            "samples": each.samples,
            "ratio": each.ratio,
            "kernel_ratio": each.kernel_ratio,
            "cpus": each.cpus,
        }
        for each in ran.ran
    ]


def of_profile(found: Profile, by: Level, top: int) -> WhoRan:
    return who.who_ran(found.selection, by, top)


def tracks(recording: Recording, question: TracksQuestion, load: Load = load_stacks) -> Columns:
    """Raises QuestionError."""
    found = profile(recording, question, load)
    selection = found.selection
    interval_us = float(recording.node.get("interval_s") or 1) * 1e6
    most = max(1, round((selection.end_us - selection.start_us) / interval_us))
    drawn = who.tracks(selection, question.by, question.top, min(question.columns, most))
    scalars = {
        "node": recording.name,
        "from": selection.start_us / 1e6,
        "to": selection.end_us / 1e6,
        "by": question.by,
        "columns": drawn.columns,
        "column_s": drawn.column_us / 1e6,
        "hz": rate(selection),
        "others": drawn.others,
        "tracks": [{**asdict(each.group), "samples": int(each.samples.sum())} for each in drawn.tracks],
    }
    empty = np.zeros(0, np.int64)
    arrays = {
        "samples": np.concatenate([empty, *(each.samples for each in drawn.tracks)]).astype(np.uint32),
        "kernel": np.concatenate([empty, *(each.kernel for each in drawn.tracks)]).astype(np.uint32),
    }
    return Columns("tracks", scalars, arrays)
