from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.page_server import PageServer, page_server
from tests.helpers.recordings import Written, write_recording


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A minute of four cores, the last of them lost for six seconds; nobody may change it."""
    return write_recording(tmp_path_factory.mktemp("rec") / "flight", cpus=4, seconds=60, rollup_days=1)


@pytest.fixture(scope="module")
def server(written: Written, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """That minute, served on the loopback."""
    with page_server(str(written.dir), home=tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path
