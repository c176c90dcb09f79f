"""One trap a file. A rule is a module with

    ID       what its findings are called, "endless-restart"
    TITLE    one line for lists and SARIF
    find     Node -> findings, none where it does not apply
    SYSCTLS  names of sysctls that it reads, if any

Rules are found by listing this folder: a new one is a new file.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Protocol, cast

from zombiescope.audit.finding import Finding

if TYPE_CHECKING:
    from zombiescope.audit.node import Node


class Rule(Protocol):
    ID: str
    TITLE: str

    def find(self, node: Node) -> Iterable[Finding]: ...


@cache
def every() -> tuple[Rule, ...]:
    names = sorted(module.name for module in iter_modules(__path__))
    return tuple(cast("Rule", import_module(f"{__name__}.{name}")) for name in names)
