"""A question as parameters of a request, named and written as the options of the command line are.

What is different is the policy of this face, since anybody may write a link: texts have a longest length, an
expression must be one that cannot take for ever, and a window reaches no further than a year beside the recording.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar, get_args

from fastapi import Query

from zombiescope.questions.parameter import Declared, Question, declared, filled

_FAR_US = 366 * 86_400_000_000
POLICY: dict[str, Any] = {"foreign": True, "reach_us": _FAR_US}

AnyQuestion = TypeVar("AnyQuestion", bound=Question)


def query(question: type[AnyQuestion]) -> Callable[..., AnyQuestion]:
    """What FastAPI is to depend on: a function with a parameter for each that the question declares."""
    known = list(declared(question, "web"))

    def fill(**values: Any) -> AnyQuestion:
        """Raises QuestionError."""
        return filled(question, POLICY | {each.field: _value(each, values[each.field]) for each in known})

    fill.__signature__ = Signature([_parameter(each) for each in known])  # type: ignore[attr-defined]
    return fill


def _value(each: Declared, given: Any) -> Any:
    read = each.parameter.foreign
    return given if read is None or given is None else read(given)


def _parameter(each: Declared) -> Parameter:
    default = Parameter.empty if each.default is ... else None if each.default == () else each.default
    return Parameter(each.field, Parameter.KEYWORD_ONLY, default=default, annotation=_annotation(each))


def _annotation(each: Declared) -> Any:
    said = each.parameter
    about: dict[str, Any] = {"alias": each.name, "description": said.help}
    if each.element is not None:
        one = Annotated[each.element, Query(**_bounds(each.element, each))]  # type: ignore[name-defined]
        return Annotated[list[one] | None, Query(max_length=said.most, **about)]
    kind = each.type if said.foreign is None else str | None
    return Annotated[kind, Query(**_bounds(kind, each), **about)]


def _bounds(kind: Any, each: Declared) -> dict[str, Any]:
    """What a value of this kind must keep to."""
    kinds = (kind, *get_args(kind))
    if str in kinds:
        return {"max_length": each.parameter.longest}
    if int in kinds or float in kinds:
        highest = each.parameter.foreign_high if each.parameter.high is None else each.parameter.high
        return {"ge": each.parameter.low, "le": highest}
    return {}
