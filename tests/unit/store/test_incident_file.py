"""incidents.json: bounded, whole, and never in the way of whoever asks for the status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from zombiescope.store import incident_file


def incident(number: int, state: str = "closed") -> dict[str, Any]:
    return {"id": str(number), "to": float(number), "state": state}


def test_the_newest_are_kept(tmp_path: Path) -> None:
    incident_file.write(tmp_path, [incident(number) for number in range(incident_file.MOST + 5)], 7)
    known = incident_file.read(tmp_path)
    assert len(known) == incident_file.MOST
    assert known[-1] == incident(incident_file.MOST + 4)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b'{"incidents": 5}', b'{"incidents": [5, null, "x"]}', b"\xff\xfe\x00"]
)
def test_a_damaged_file_is_no_incident(tmp_path: Path, data: bytes) -> None:
    (tmp_path / incident_file.NAME).write_bytes(data)
    assert incident_file.read(tmp_path) == []
    incident_file.close(tmp_path)
    assert (tmp_path / incident_file.NAME).read_bytes() == data, "nothing was open, so nothing is written"


def test_no_file_is_no_incident(tmp_path: Path) -> None:
    assert incident_file.open_ones(tmp_path) == []
    incident_file.close(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_recorder_that_ends_closes_what_is_open(tmp_path: Path) -> None:
    incident_file.write(tmp_path, [incident(1), incident(2, "open")], 7)
    assert incident_file.open_ones(tmp_path) == [incident(2, "open")]
    incident_file.close(tmp_path)
    assert incident_file.read(tmp_path) == [incident(1), incident(2)]
