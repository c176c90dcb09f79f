from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.cli import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)
