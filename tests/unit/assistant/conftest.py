from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.recordings import write_recording

from zombiescope.assistant.tools import Asked
from zombiescope.web.recordings import Place, Recordings

FIXTURES = Path(__file__).parents[2] / "fixtures" / "recordings"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node with one bad minute."""
    place = tmp_path_factory.mktemp("assistant") / "recording"
    write_recording(place)
    return place


@pytest.fixture(scope="module")
def recordings(recorded: Path) -> Iterator[Recordings]:
    """The node with a bad minute first, and every fixture recording."""
    found = Recordings([Place(recorded), *(Place(path) for path in sorted(FIXTURES.glob("*.zscope")))])
    yield found
    found.close()


@pytest.fixture(scope="module")
def asked(recordings: Recordings) -> Asked:
    return Asked(recordings)
