"""Python packages that zombiescope needs: a missing one is one line with the command that installs it.

Which extra brings a package is read from our own metadata, so it is declared in pyproject.toml only.
"""

from __future__ import annotations

import re

from zombiescope.base.errors import UserError

_MODULES = {"PyYAML": "yaml"}
"""Packages whose module has another name."""
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+).*?(?:extra == [\"'](\w+)[\"'])?$")


class MissingPackageError(UserError):
    """A package is not installed."""


def explained(error: Exception) -> Exception:
    """A module that one of our requirements brings and that is missing, as a UserError; any other error as it is."""
    if not isinstance(error, ModuleNotFoundError) or error.name not in (bringing := _by_module()):
        return error
    extra = bringing[error.name]
    package = f"'zombiescope[{extra}]'" if extra else "zombiescope"
    return MissingPackageError(f"the Python package {error.name} is not installed", f"pip install {package}")


def _by_module() -> dict[str, str | None]:
    """Module -> the extra that brings it, None for a package that is always needed."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("zombiescope") or []
    except PackageNotFoundError:  # run from a source tree
        lines = []
    found: dict[str, str | None] = {}
    for name, extra in (match.groups() for line in lines if (match := _REQUIREMENT.match(line))):
        found.setdefault(_MODULES.get(name, name.lower().replace("-", "_")), extra)
    return found
