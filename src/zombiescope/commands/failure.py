"""What a person reads when a command could not run: one line that says what failed, on what, and how to mend
it."""

from __future__ import annotations


class Failure(Exception):  # noqa: N818  not a defect of the program: what it has to tell a person
    """The command could not run (exit 1). `mend` is the command or setting that helps, if there is one."""

    def __init__(self, what: str, mend: str | None = None) -> None:
        super().__init__(what if mend is None else f"{what}; {mend}")


def one_line(error: BaseException) -> str:
    """Any exception as one line."""
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split())
