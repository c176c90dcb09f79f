"""`zombiescope lab demo`: the story in two minutes, on this machine and for real."""

from __future__ import annotations

EXAMPLES = ""


def command() -> None:
    """x"""
