"""CPUs that come and go."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.recorder.online import OnlineCpus


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sys/devices/system/cpu/online"
    path.parent.mkdir(parents=True)
    path.write_text("0-3\n")
    return path


def test_those_that_came_and_those_that_went_are_an_event_each(file: Path, tmp_path: Path) -> None:
    online = OnlineCpus(str(tmp_path))
    assert online.follow(1) == []
    file.write_text("0,2-5\n")
    events = online.follow(2)
    assert [(event.kind, event.fields["cpus"], event.at_us) for event in events] == [
        ("cpu_online", [4, 5], 2),
        ("cpu_offline", [1], 2),
    ]
    assert online.cpus == (0, 2, 3, 4, 5)
    assert online.follow(3) == []


def test_a_file_that_cannot_be_read_changes_nothing(file: Path, tmp_path: Path) -> None:
    online = OnlineCpus(str(tmp_path))
    file.write_text("")
    assert online.follow(1) == []
    assert online.cpus == (0, 1, 2, 3)


def test_a_machine_that_does_not_say_has_one(tmp_path: Path) -> None:
    assert OnlineCpus(str(tmp_path)).cpus == (0,)
