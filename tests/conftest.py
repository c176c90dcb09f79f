"""What the tests may rely on."""

from __future__ import annotations

import os
import shutil

import pytest


class Needs:
    """Skips a test with the reason, where this machine lacks what it needs."""

    def root(self) -> None:
        if os.geteuid() != 0:
            pytest.skip("needs root")

    def tool(self, name: str) -> None:
        if shutil.which(name) is None:
            pytest.skip(f"needs {name}")

    def kmsg(self) -> None:
        if not os.access("/dev/kmsg", os.R_OK | os.W_OK):
            pytest.skip("needs /dev/kmsg, readable and writable")


@pytest.fixture
def needs() -> Needs:
    return Needs()
