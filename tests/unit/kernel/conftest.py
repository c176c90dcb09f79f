"""Fixture trees: /proc and /sys of several kernels, one directory a node."""

from collections.abc import Callable
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture
def node() -> Callable[[str], str]:
    """The root of a fixture node, to be passed where read() takes a root."""

    def root(name: str) -> str:
        directory = FIXTURES / name
        assert directory.is_dir(), f"no fixture node {name}"
        return str(directory)

    return root
