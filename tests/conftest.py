"""What tests may ask of the machine they run on; a test that cannot run says why."""

import os
import shutil

import pytest


class Needs:
    """Each method skips the test unless the machine has the thing."""

    def root(self) -> None:
        if os.geteuid() != 0:
            pytest.skip("needs root")

    def file(self, path: str) -> None:
        if not os.access(path, os.R_OK):
            pytest.skip(f"needs {path}")

    def program(self, name: str) -> None:
        if shutil.which(name) is None:
            pytest.skip(f"needs the program {name}")


@pytest.fixture
def needs() -> Needs:
    return Needs()
