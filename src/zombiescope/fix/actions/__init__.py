"""How each kind of step is done; a file that is here is used. Its ACTIONS are the classes that it holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from zombiescope.fix.step import Action, ActionFailedError


@cache
def kinds() -> dict[str, Any]:
    """Classes of actions by their kind."""
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__) if found.name[0] != "_"]
    return {one.kind: one for module in modules for one in getattr(module, "ACTIONS", ())}


def make(kind: str, arguments: Mapping[str, Any]) -> Action:
    """An action of a plan or of the log. Raises ActionFailedError where there is no such kind, or none of these
    arguments: a log may be older or newer than this program."""
    try:
        made: Action = kinds()[kind](**arguments)
    except (KeyError, TypeError, ValueError) as error:
        raise ActionFailedError(f"no step of kind {kind} can be made of {dict(arguments)!r}: {error}") from None
    return made
