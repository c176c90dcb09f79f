"""The known root causes, one file each; a file that is here is used."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from zombiescope.diagnosis.pattern import Pattern


@cache
def every() -> tuple[Pattern, ...]:
    """All patterns, by id."""
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__) if found.name[0] != "_"]
    return tuple(sorted((module.PATTERN for module in modules), key=lambda pattern: pattern.id))


def by_id(name: str) -> Pattern:
    """Raises KeyError."""
    return {pattern.id: pattern for pattern in every()}[name]
