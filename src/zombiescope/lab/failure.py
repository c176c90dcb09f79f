"""What went wrong in the laboratory."""

from __future__ import annotations

from zombiescope.base.errors import UserError


class LabError(UserError):
    """A machine did not come up, or did not do what it was told to."""


class CannotBuildError(LabError):
    """This machine lacks what an image is built with: a package, a mirror, root."""
