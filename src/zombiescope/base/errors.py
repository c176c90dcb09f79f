"""Errors that a person sees: what is wrong, on what, and what fixes it. They are no defects of the program.

    UserError               could not be done: exit 1, HTTP 503
      QuestionError         could not be understood: exit 2, HTTP 400

Each room derives its own kinds from these (a file that is no recording, a peer that does not answer, a machine that
does not boot). Whoever prints one takes `what` and `fix` as they are; nobody takes a message apart.
"""

from __future__ import annotations


class UserError(Exception):
    """`what` failed, and on what; `fix` is the command or setting that helps, None where nothing is known to."""

    def __init__(self, what: str, fix: str | None = None) -> None:
        super().__init__(what, fix)
        self.what, self.fix = what, fix

    def __str__(self) -> str:
        return self.what if self.fix is None else f"{self.what}; {self.fix}"


class QuestionError(UserError):
    """What was asked cannot be understood, or is not there. `option` is the one that is wrong, without dashes: the
    command line writes it as --option, a request as a parameter."""

    def __init__(self, what: str, fix: str | None = None, *, option: str | None = None) -> None:
        super().__init__(what, fix)
        self.option = option
