"""What a test may need of the machine; without it the test is skipped and says why."""

from __future__ import annotations

import os

import pytest


class Needs:
    def root(self) -> None:
        if os.geteuid() != 0:
            pytest.skip("needs root")


@pytest.fixture
def needs() -> Needs:
    return Needs()
