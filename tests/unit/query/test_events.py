"""Events: in order, filtered, with fields that need not be well formed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.helpers.recordings import SECOND, START_US, write_recording, write_segment

from zombiescope.query.events import events, of_frame
from zombiescope.store.log import SegmentReader
from zombiescope.store.reader import open_recording


def test_events_of_a_window_in_the_order_of_time(tmp_path: Path) -> None:
    written = write_recording(tmp_path)
    with open_recording(tmp_path) as recording:
        found = events(recording)
        late = events(recording, START_US + 30 * SECOND)
    assert [event.at_us for event in found] == sorted(event.at_us for event in found)
    (reset,) = [event for event in found if event.kind == "nic_reset"]
    assert written.incident
    assert reset.at_us == written.incident.to_us - 1
    assert reset.fields == {"nic": "eth0", "queue": 5}
    assert "mark" not in {event.kind for event in late}


def test_kinds_and_severities_select(tmp_path: Path) -> None:
    write_recording(tmp_path)
    with open_recording(tmp_path) as recording:
        assert {event.kind for event in events(recording, kinds={"mark"})} == {"mark"}
        assert {event.kind for event in events(recording, at_least="critical")} == {"nic_reset"}
        assert {event.severity for event in events(recording, at_least="warning")} == {"warning", "critical"}


def test_fields_that_are_no_object_are_kept_as_they_are(tmp_path: Path) -> None:
    rows = [
        (START_US + 1, "kernel_log", "kmsg", "fatal", "x", "{broken"),
        (START_US + 2, "kernel_log", "kmsg", None, None, "[1]"),
    ]
    write_segment(tmp_path, {"events": rows})
    with open_recording(tmp_path) as recording:
        found = events(recording, at_least="critical")
        every = events(recording)
    assert [event.fields for event in found] == [{"unreadable": "{broken"}]  # an unknown severity is not hidden
    assert every[1].severity == "info"
    assert every[1].fields == {"unreadable": "[1]"}


def test_events_of_frames_are_those_of_the_table(tmp_path: Path) -> None:
    written = write_recording(tmp_path, segment_s=60)
    with written.segments[0].open("rb") as file:
        live = [event for frame in SegmentReader(file).frames() for event in of_frame(frame)]
    with open_recording(tmp_path) as recording:
        assert live == events(recording)


def test_following_needs_nothing_heavy() -> None:
    program = "import sys, zombiescope.query.events; sys.exit(bool({'numpy', 'pyarrow'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
