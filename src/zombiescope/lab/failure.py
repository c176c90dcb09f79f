"""What went wrong in the laboratory, in one line, with what mends it."""

from __future__ import annotations


class LabError(Exception):
    """A machine could not be had, or did not do as asked. `mend` is the command or setting that helps."""

    def __init__(self, what: str, mend: str | None = None) -> None:
        super().__init__(what if mend is None else f"{what}; {mend}")


class CannotBuildError(LabError):
    """This machine lacks what an image is built with: a package, a mirror, root."""
