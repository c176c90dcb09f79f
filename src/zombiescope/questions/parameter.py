"""How a question is declared: once, as a frozen dataclass, and both faces are made from it.

A field made by `parameter()` is one thing that may be asked, with its help and its bounds: cli/options.py makes
an option of it, web/parameters.py a parameter of a request. A field that is itself a Question stands for all of its
fields. Any other field is no parameter: a face sets it for all that come through it (a policy), such as how far a
window may reach for a request.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

_KEY = "parameter"
Face = Literal["command", "web"]


class Question:
    """What all questions derive from; each is a frozen dataclass."""


AnyQuestion = TypeVar("AnyQuestion", bound=Question)


@dataclass(frozen=True, slots=True)
class Parameter:
    help: str
    metavar: str | None = None
    name: str | None = None
    """As the field, unless Python reserves the word."""
    also: tuple[str, ...] = ()
    """Further names on the command line."""
    low: float | None = None
    high: float | None = None
    foreign_high: float | None = None
    """The highest that a request may ask for, where the command line has no limit."""
    longest: int = 1_000
    """Characters of a text."""
    most: int = 100
    """How often it may be repeated."""
    panel: str | None = None
    """Where --help lists it."""
    flags: bool = False
    """One of two, which the command line writes as --one/--other."""
    parse: Callable[[str], Any] | None = None
    """What the command line writes in another form than the value: a duration with its unit. Raises QuestionError."""
    foreign: Callable[[str], Any] | None = None
    """Likewise for a request. Raises QuestionError."""
    only: Face | None = None


def parameter(default: Any, help_: str, **more: Any) -> Any:
    """The field of a question; `default` ... means that it must be given."""
    metadata = {_KEY: Parameter(help_, **more)}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Declared:
    """A parameter with what its field says of it."""

    field: str
    type: Any
    default: Any
    """... where it must be given."""
    parameter: Parameter

    @property
    def name(self) -> str:
        return self.parameter.name or self.field

    @property
    def element(self) -> Any | None:
        """What it is a list of; None for a single value."""
        return get_args(self.type)[0] if get_origin(self.type) is tuple else None


def declared(question: type[Question], face: Face) -> Iterator[Declared]:
    """The parameters of a question and of the questions in it, in their order."""
    hints = _hints(cast("Hashable", question))
    for each in fields(question):  # type: ignore[arg-type]  # every Question is a dataclass
        hint = hints[each.name]
        if _is_question(hint):
            yield from declared(hint, face)
        elif _KEY in each.metadata and each.metadata[_KEY].only in (None, face):
            default = ... if each.default is MISSING else each.default
            yield Declared(each.name, hint, default, each.metadata[_KEY])


def filled(question: type[AnyQuestion], given: Mapping[str, Any]) -> AnyQuestion:
    """The question with what was given, by the names of fields; the rest has its default."""
    hints = _hints(cast("Hashable", question))
    values: dict[str, Any] = {}
    for each in fields(question):  # type: ignore[arg-type]
        if _is_question(hints[each.name]):
            values[each.name] = filled(hints[each.name], given)
        elif each.name in given:
            value = given[each.name]
            values[each.name] = tuple(value or ()) if get_origin(hints[each.name]) is tuple else value
    return question(**values)


@cache
def _hints(question: Hashable) -> dict[str, Any]:
    return get_type_hints(question)


def _is_question(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Question)
