"""What a person reads when a command could not run: one line that says what failed, on what, and how to fix it."""

from __future__ import annotations

from zombiescope.base.errors import UserError


class Failure(UserError):  # noqa: N818  not a defect of the program: what it has to say to a person
    """The command could not run (exit 1)."""


def one_line(error: BaseException) -> str:
    """Any exception as one line."""
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split())
