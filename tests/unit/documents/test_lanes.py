"""Lanes: too many events are thinned evenly, the worst first; a step in which nobody looked has no pressure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.helpers.recordings import write_segment

from zombiescope.documents import lanes
from zombiescope.questions.window import Window, zone_of
from zombiescope.store.event import Event
from zombiescope.store.reader import open_recording

SECOND = 1_000_000
START = 1_760_000_000 * SECOND


def event(number: int, kind: str = "unit_restart", severity: str = "info") -> Event:
    return Event(START + number * SECOND, kind, "systemd", severity, "x", {})


def test_events_that_are_equally_bad_are_thinned_everywhere() -> None:
    # GIVEN three times as many restarts as there is room for, and among them one of each that must stay
    found = [event(number) for number in range(3 * lanes.MOST_EVENTS)]
    found[7] = event(7, "soft_lockup", "critical")
    found[11] = event(11, "mark")
    kept = lanes._worst(found)
    assert len(kept) == lanes.MOST_EVENTS
    assert {"soft_lockup", "mark"} <= {each.kind for each in kept}
    thirds = [sum(each.at_us // SECOND * SECOND < START + end * SECOND for each in kept)
              for end in (lanes.MOST_EVENTS, 2 * lanes.MOST_EVENTS)]  # fmt: skip
    assert abs(thirds[0] - lanes.MOST_EVENTS / 3) < 5
    assert abs(thirds[1] - 2 * lanes.MOST_EVENTS / 3) < 5


def test_nobody_marks_away_what_the_kernel_said_nor_what_others_marked() -> None:
    # GIVEN one user who marks all the time, another who marked twice, and ten critical events
    found = [replace(event(number, "mark"), fields={"uid": 1000}) for number in range(2 * lanes.MOST_EVENTS)]
    for number in range(0, 2000, 200):
        found[number] = event(number, "soft_lockup", "critical")
    for number in (3, 1_701):
        found[number] = replace(event(number, "mark"), fields={"uid": 1001})
    kept = lanes._worst(found)
    # THEN all that matters is there, and of the flood a part from everywhere
    assert sum(each.kind == "soft_lockup" for each in kept) == 10
    assert sum(each.fields.get("uid") == 1001 for each in kept) == 2
    assert sum(each.kind == "mark" for each in kept) == lanes.MOST_MARKS
    assert kept == sorted(kept, key=lambda each: each.at_us)


def test_a_step_in_which_nobody_looked_has_no_pressure(tmp_path: Path) -> None:
    # GIVEN a counter of pressure that moved in the second second, another counter in each but the fourth
    rows = [(START + (second + 1) * SECOND - 1000, 1, 5) for second in range(6) if second != 3]
    rows.append((START + 2 * SECOND - 1000, 0, 400_000))
    series = [(0, "pressure", "some_us", "cpu", "counter"), (1, "vmstat", "pgfault", None, "counter")]
    write_segment(tmp_path, {"series": series, "counters": sorted(rows)})
    with open_recording(tmp_path) as recording:
        document = lanes.document(recording, Window(START, START + 6 * SECOND, zone_of({})), 100)
    assert document["pressure"]["cpu"] == [0.0, 0.4, 0.0, None, 0.0, 0.0]
    assert document["pressure"]["io"] == [None] * 6
