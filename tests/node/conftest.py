"""Where no machine can be had at all, that is said once a file and not once a test."""

from __future__ import annotations

import os

import pytest
from tests.conftest import REQUIRE

from zombiescope.lab import programs
from zombiescope.lab.failure import CannotBuildError

collect_ignore = [] if os.environ.get("ZOMBIESCOPE_KERNEL_4_19") else ["test_old_kernel.py"]
"""A kernel that no Debian suite has: tried where somebody brought its image, and not missed elsewhere."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    try:
        programs.find("qemu-system-x86_64")
    except CannotBuildError as error:
        if not os.environ.get(REQUIRE):
            for item in items:
                if item.get_closest_marker("node"):
                    item.add_marker(pytest.mark.skip(reason=str(error)))
