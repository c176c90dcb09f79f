"""A question as options: typer reads the options of a command off the parameters of its function.

`expanded` gives typer a function with an option for each parameter that a question declares (questions/parameter.py);
the command gets the question, filled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from zombiescope.base.errors import QuestionError
from zombiescope.cli import completion
from zombiescope.cli.usage import wrong_usage
from zombiescope.questions.parameter import Declared, Question, declared, filled


def expanded(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command as typer is to see it."""
    hints = get_type_hints(command, include_extras=True)
    questions: dict[str, type[Question]] = {}
    options: dict[str, Declared] = {}
    renamed: dict[str, str] = {}
    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        hint = hints[parameter.name]
        question, names = _question(hint)
        if question is not None:
            questions[parameter.name] = question
            renamed |= names
            known = list(declared(question, "command"))
            options |= {each.field: each for each in known}
            parameters += [_option(each, names.get(each.name, each.name)) for each in known]
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hint))

    @wraps(command)
    def call(**values: Any) -> Any:
        given = {name: _value(each, values.pop(name)) for name, each in options.items()}
        with wrong_usage(renamed):
            asked = {name: filled(question, given) for name, question in questions.items()}
            return command(**asked, **values)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del call.__wrapped__  # typer would look through it
    return call


def _question(hint: Any) -> tuple[type[Question] | None, dict[str, str]]:
    """The question that a parameter of a command is, and which of its names the command writes otherwise:
    Annotated[Question, {"to": "until"}]."""
    names: dict[str, str] = {}
    if get_origin(hint) is Annotated and isinstance(hint.__metadata__[0], dict):
        hint, names = hint.__origin__, hint.__metadata__[0]
    return (hint, names) if isinstance(hint, type) and issubclass(hint, Question) else (None, {})


@cache  # most commands have a window, and --help reads all of them
def _option(each: Declared, name: str) -> Parameter:
    said = each.parameter
    default = None if each.default == () else each.default
    info = typer.Option(
        *_written(each, name),
        metavar=said.metavar,
        help=said.help,
        min=said.low if _is_number(each) else None,
        max=said.high if _is_number(each) else None,
        parser=None if said.parse is None else _parser(said.parse),
        rich_help_panel=said.panel,
        autocompletion=completion.offered(each.field),
        show_default=bool(default),
    )
    return Parameter(each.field, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[_type(each), info])


def _written(each: Declared, name: str) -> tuple[str, ...]:
    if each.parameter.flags:
        return ("/".join(f"--{choice}" for choice in _choices(each)),)
    name = name.replace("_", "-")
    first = f"--{name}/--no-{name}" if each.type == bool | None else f"--{name}"
    return (first, *(f"--{other}" for other in each.parameter.also))


def _choices(each: Declared) -> tuple[str, ...]:
    """Of a Literal, or None."""
    return get_args(get_args(each.type)[0])


def _type(each: Declared) -> Any:
    if each.parameter.flags:
        return bool | None
    return each.type if each.element is None else list[each.element] | None  # type: ignore[name-defined]


def _is_number(each: Declared) -> bool:
    """Whether typer is to check its bounds."""
    if each.parameter.parse is not None:
        return False
    kinds = (each.type, *get_args(each.type))
    return each.element is None and (int in kinds or float in kinds)


def _parser(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except QuestionError as error:
            raise typer.BadParameter(str(error)) from None  # typer knows which option it is

    return parsed


def _value(each: Declared, given: Any) -> Any:
    if each.parameter.flags and given is not None:
        return _choices(each)[0 if given else 1]
    return given
