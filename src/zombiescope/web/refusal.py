"""A request that is not answered: one line that says what is wrong, and one that says what helps."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):  # noqa: N818  not a defect: what a client is told
    def __init__(self, status: int, what: str, mend: str | None = None) -> None:
        super().__init__(what)
        self.status, self.what, self.mend = status, what, mend

    def document(self) -> dict[str, Any]:
        return document(self.what, self.mend)


def document(what: str, mend: str | None) -> dict[str, Any]:
    return {"error": {"what": " ".join(what.split()), "mend": mend}}
