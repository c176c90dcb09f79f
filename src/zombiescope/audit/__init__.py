"""Traps of a node, or of an image that nobody booted, before anything breaks.

`examine` reads what systemd would read and answers with findings, the worst first. Nothing is executed and
nothing outside the given root is opened. Each rule is a file in rules/; agents and kernels are data in catalogue/.

Importing this package costs nothing: a diagnosis asks it whether a unit is protected (protected.py), and needs neither
D-Bus nor the rules for that.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zombiescope.audit.catalogue import CatalogueError
    from zombiescope.audit.examination import examine, look
    from zombiescope.audit.finding import Audit, EvidenceLine, Finding
    from zombiescope.base.missing import Missing

__all__ = ["Audit", "CatalogueError", "EvidenceLine", "Finding", "Missing", "examine", "look"]

_PLACES = {
    "Missing": "zombiescope.base.missing",
    "CatalogueError": "zombiescope.audit.catalogue",
    "examine": "zombiescope.audit.examination",
    "look": "zombiescope.audit.examination",
    "Audit": "zombiescope.audit.finding",
    "EvidenceLine": "zombiescope.audit.finding",
    "Finding": "zombiescope.audit.finding",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'zombiescope.audit' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_PLACES[name]), name)
    return value
