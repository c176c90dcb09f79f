"""What was typed and cannot be understood, as typer tells it: exit code 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from zombiescope.documents.unclear import UnclearError


@contextmanager
def wrong_usage() -> Iterator[None]:
    """Turns UnclearError into typer.BadParameter."""
    try:
        yield
    except UnclearError as error:
        raise typer.BadParameter(str(error)) from None
