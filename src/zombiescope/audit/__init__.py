"""What is wrong with a node before anything breaks. Only the face so far: nothing is examined yet."""

from __future__ import annotations

from typing import Any

from zombiescope.audit.finding import Audit, Evidence, Finding

__all__ = ["Audit", "Evidence", "Finding", "examine"]


def examine(root: str = "/", live: Any = None) -> Audit:  # noqa: ARG001  the face that is to be filled
    """The findings of the node whose files are below `root`, worst first."""
    return Audit(root, False, (), ())
