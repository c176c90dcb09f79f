"""A request that is not answered: one line that says what is wrong, and one that says how to fix it."""

from __future__ import annotations

from typing import Any

from zombiescope.base.errors import UserError


class Refusal(UserError):  # noqa: N818  not a defect: what a client is answered
    def __init__(self, status: int, what: str, fix: str | None = None) -> None:
        super().__init__(what, fix)
        self.status = status

    def document(self) -> dict[str, Any]:
        return document(self.what, self.fix)


def document(what: str, fix: str | None) -> dict[str, Any]:
    """`fix`: how to fix it, or null."""
    return {"error": {"what": " ".join(what.split()), "fix": fix}}
