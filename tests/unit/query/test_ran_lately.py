"""Who ran lately: frame by frame the same processes and figures as of a window."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.recordings import write_recording

from zombiescope.cli.top.feed import RAN, LiveFeed, PastFeed
from zombiescope.query.ran_lately import SPAN_US
from zombiescope.query.selection import Selection
from zombiescope.query.who import who_ran
from zombiescope.store.reader import open_recording


def test_top_says_what_stacks_and_the_page_say(tmp_path: Path) -> None:
    written = write_recording(tmp_path / "rec", cpus=4, seconds=40)
    (node_dir,) = written.dir.glob("node=*")
    live = LiveFeed(node_dir)
    live.poll()
    with open_recording(written.dir) as recording:
        end_us = recording.end_us + 1
        table = who_ran(Selection(recording, end_us - SPAN_US, end_us), "process", RAN)
        past = PastFeed(recording).ran
    assert [(each.name, each.cpus, each.kernel_ratio) for each in past] == [
        (each.group.name, each.cpus, each.kernel_ratio) for each in table.ran
    ]
    told = {each.name: each for each in live.ran}
    live.close()
    assert set(told) == {each.group.name for each in table.ran}
    for each in table.ran:
        # Followed second by second, the window begins with a whole one.
        assert each.cpus is not None
        assert told[each.group.name].cpus == pytest.approx(each.cpus, abs=0.15)


def test_nobody_ran_before_the_first_sample(tmp_path: Path) -> None:
    from zombiescope.query.ran_lately import RanLately

    assert RanLately().most({}, 3) == []
