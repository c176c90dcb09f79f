"""What was typed and cannot be understood, as typer reports it: exit code 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import typer

from zombiescope.base.errors import QuestionError


@contextmanager
def wrong_usage(renamed: Mapping[str, str] = {}) -> Iterator[None]:
    """Turns QuestionError into typer.BadParameter: "--option: what; fix". `renamed`: options that the command calls
    otherwise."""
    try:
        yield
    except QuestionError as error:
        raise typer.BadParameter(f"{_written(error.option, renamed)}{error}") from None


def _written(option: str | None, renamed: Mapping[str, str]) -> str:
    """An option as it is typed; an argument has an upper-case name."""
    if option is None:
        return ""
    name = renamed.get(option, option).replace("_", "-")
    return f"{name if name.isupper() else f'--{name}'}: "
