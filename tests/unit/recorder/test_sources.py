"""What is missing, since when, and when it came back."""

from __future__ import annotations

from zombiescope.recorder.sources import MAX_ENDED, Sources


def test_a_source_that_stays_missing_is_news_once() -> None:
    sources = Sources()
    assert sources.lacks("disk", "full", "room", 10)
    assert not sources.lacks("disk", "read-only", "a disk", 20)
    assert [(one.why, one.grant) for one in sources.missing] == [("read-only", "a disk")]


def test_its_gap_begins_with_the_first_and_has_the_last_reason() -> None:
    sources = Sources()
    sources.lacks("disk", "full", "room", 10)
    sources.lacks("disk", "read-only", "a disk", 20)
    assert sources.has("disk", 30)
    assert not sources.has("disk", 40)
    assert sources.take_ended() == [(10, 30, "disk", "read-only")]
    assert sources.take_ended() == []


def test_an_open_gap_is_cut_at_the_start_of_the_segment() -> None:
    sources = Sources()
    sources.lacks("disk", "full", "room", 10)
    sources.lacks("marks", "no socket", "a directory", 60)
    assert sources.open_gaps(50, 90) == [(50, 90, "disk", "full"), (60, 90, "marks", "no socket")]


def test_gaps_that_nobody_takes_do_not_pile_up() -> None:
    sources = Sources()
    for at_us in range(3 * MAX_ENDED):
        sources.lacks("disk", "full", "room", at_us)
        sources.has("disk", at_us + 1)
    assert len(sources.take_ended()) == MAX_ENDED
