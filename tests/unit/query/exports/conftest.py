from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers import truth
from tests.helpers.recordings import Written, write_recording

from zombiescope.store.reader import Recording, open_recording


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Forty seconds of four cores in two parts; nobody may change it."""
    return write_recording(tmp_path_factory.mktemp("rec") / "flight", cpus=4, seconds=40)


@pytest.fixture
def recording(written: Written) -> Iterator[Recording]:
    with open_recording(written.dir) as opened:
        yield opened


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Recording]:
    with open_recording(truth.write_odd(tmp_path / "odd")) as opened:
        yield opened
