"""Packages that only one service needs: one that is missing is a line with the command that installs it."""

from __future__ import annotations

import importlib
from typing import Any

from zombiescope.base.packages import MissingPackageError, install


def package(name: str, extra: str) -> Any:
    """The module. Raises MissingPackageError."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        why = f"the Python package {error.name or name} is not installed"
        raise MissingPackageError(why, install(extra)) from error
