"""Options that several commands share, as one parameter of each.

typer reads the options of a command off the parameters of its function and has no groups. A dataclass that derives from
OptionGroup is one here: `expanded` gives typer a function with the fields of the group as parameters of their own, and
the command gets the group, filled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


class OptionGroup:
    """A frozen dataclass whose fields are annotated as typer wants parameters to be; every field has a default."""


def expanded(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command as typer is to see it."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[OptionGroup]] = {}
    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and issubclass(hint, OptionGroup):
            groups[parameter.name] = hint
            parameters += _parameters(hint)
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hint))
    if not groups:
        return command

    @wraps(command)
    def call(**values: Any) -> Any:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})  # type: ignore[arg-type]
        return command(**values)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del call.__wrapped__  # typer would look through it
    return call


def _parameters(group: type[OptionGroup]) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    found = []
    for field in fields(group):  # type: ignore[arg-type]
        assert field.default is not MISSING, f"{group.__name__}.{field.name} needs a default"
        found.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]))
    return found
