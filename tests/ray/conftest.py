"""Ray leaves warnings of its own, which are not ours to fix."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.ray)
        item.add_marker(pytest.mark.filterwarnings("default"))
