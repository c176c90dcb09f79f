"""A question is declared once: the command line and the web offer the same parameters, with the policy of each."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Annotated, Any

import pytest
import typer

from zombiescope.cli.options import expanded
from zombiescope.questions import views
from zombiescope.questions.filters import FilterQuestion
from zombiescope.questions.parameter import Question, declared, parameter
from zombiescope.questions.sides import Side
from zombiescope.questions.window import WindowQuestion
from zombiescope.web.parameters import POLICY, query

QUESTIONS = [
    each
    for each in vars(views).values()
    if isinstance(each, type) and issubclass(each, Question) and each.__module__ == views.__name__
]


def options(question: type[Question]) -> dict[str, Any]:
    """Field -> the option that typer is given."""

    def command(asked: Any) -> None: ...

    command.__annotations__["asked"] = question
    return {name: each.annotation.__metadata__[0] for name, each in signature(expanded(command)).parameters.items()}


def parameters(question: type[Question]) -> dict[str, Any]:
    """Field -> the parameter that FastAPI is given."""
    return {name: each.annotation.__metadata__[0] for name, each in signature(query(question)).parameters.items()}


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.__name__)
def test_both_faces_offer_what_is_declared_and_say_the_same_of_it(question: type[Question]) -> None:
    typed, asked = options(question), parameters(question)
    assert set(typed) == {each.field for each in declared(question, "command")}
    assert set(asked) == {each.field for each in declared(question, "web")}
    for name in typed.keys() & asked.keys():
        assert typed[name].help == asked[name].description


def test_a_new_filter_is_one_field() -> None:
    @dataclass(frozen=True, slots=True)
    class Wider(FilterQuestion):
        namespace: tuple[str, ...] = parameter((), "Only this namespace.", metavar="NAME")

    assert options(Wider)["namespace"].default == "--namespace"  # typer keeps the first name there
    assert parameters(Wider)["namespace"].description == "Only this namespace."
    filled = query(Wider)(**dict.fromkeys(parameters(Wider)) | {"namespace": ["a", "b"], "idle": False})
    assert filled.namespace == ("a", "b")


def test_what_a_request_asks_keeps_to_the_policy_of_the_web() -> None:
    asked = query(views.ProfileQuestion)(**dict.fromkeys(parameters(views.ProfileQuestion)) | {"idle": False})
    assert (asked.window.reach_us, asked.filters.foreign) == (POLICY["reach_us"], True)
    assert (views.ProfileQuestion().window.reach_us, views.ProfileQuestion().filters.foreign) == (None, False)


def test_a_request_names_no_place_on_the_disk() -> None:
    """On the command line DIR@FROM..TO opens DIR; in a link it is a time that nobody understands."""
    read = {each.field: each.parameter for each in declared(views.FlamegraphQuestion, "web")}["against"]
    assert read.parse is not None
    assert read.foreign is not None
    assert read.parse("good.zscope@11:00..11:05") == Side("good.zscope", ("11:00", "11:05"), "against")
    assert read.foreign("good.zscope@11:00..11:05") == Side(None, ("good.zscope@11:00", "11:05"), "against")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("@1780351200..@1780351260", None),
        ("1780351200..1780351260", None),
        ("good.zscope@@1780351200..@1780351260", "good.zscope"),
        ("../good@1780351200..1780351260", "../good"),
    ],
)
def test_unix_seconds_with_and_without_an_at_sign_are_a_side(text: str, place: str | None) -> None:
    read = {each.field: each.parameter for each in declared(views.FlamegraphQuestion, "command")}["against"]
    assert read.parse is not None
    assert read.parse(text) == Side(place, ("1780351200", "1780351260"), "against")


def test_an_option_is_named_as_it_is_typed() -> None:
    """A command that calls an option otherwise complains about the name that it gave it."""
    fixed = expanded(_renamed)
    assert "to" in signature(fixed).parameters
    assert signature(fixed).parameters["to"].annotation.__metadata__[0].default == "--stop"
    with pytest.raises(typer.BadParameter, match=r"^--cpu: 'x' is not a list of cores; write 3, or 0-3,8$"):
        expanded(_chosen)(**dict.fromkeys(options(FilterQuestion)) | {"cpu": ["x"], "idle": False})


def _chosen(asked: FilterQuestion) -> None:
    asked.chosen()


def _renamed(asked: Annotated[WindowQuestion, {"to": "stop"}]) -> None:
    raise NotImplementedError


def test_a_window_reaches_no_further_than_a_face_allows() -> None:
    class Recorded:
        node: dict[str, Any] = {}  # noqa: RUF012  a stand-in
        start_us, end_us = 1_780_000_000_000_000, 1_780_000_060_000_000

    far = WindowQuestion(from_="1000000000", to="1999999999")
    assert far.choose(Recorded()).start_us == 1_000_000_000_000_000
    near = WindowQuestion(from_="1000000000", to="1999999999", reach_us=5_000_000).choose(Recorded())
    assert (near.start_us, near.end_us) == (Recorded.start_us - 5_000_000, Recorded.end_us + 5_000_000)
