"""The golden corpus asks every command that answers about a recording. `make golden` compares the answers."""

from __future__ import annotations

from pathlib import Path

from tests.golden import corpus
from tests.golden.__main__ import differences


def test_every_command_is_asked_or_left_out_for_a_reason() -> None:
    asked = {line[0] for line in corpus.command_lines()}
    by_eye = {"serve", "top", "up"}  # a page and two screens: no JSON
    assert asked | set(corpus.LEFT_OUT) | by_eye == set(corpus.commands())
    assert not asked & set(corpus.LEFT_OUT)


def test_every_fixture_recording_has_its_answers() -> None:
    subjects = corpus.subjects()
    assert {one.path for one in subjects} == set(corpus.CORPUS.glob("*.zst"))
    asked = {" ".join(line) for line in corpus.command_lines()}
    assert all(set(one.accepted()) == asked for one in subjects if one.name != "scenes")


def test_no_answer_is_an_error() -> None:
    failed = [
        (one.name, command)
        for one in corpus.subjects()
        if one.name != "scenes"
        for command, answer in one.accepted().items()
        if answer["exit code"] not in (0, 3) or answer["document"] is None
    ]
    assert failed == []


def test_a_difference_is_shown_as_lines() -> None:
    lines = list(differences({"cores": {"busy": 1, "idle": 2}, "info": 1}, {"cores": {"busy": 1, "idle": 3}, "who": 1}))
    assert [line.strip() for line in lines if line.strip().startswith(("-", "+"))] == ['- "idle": 2', '+ "idle": 3']
    assert "  info: no longer asked" in lines
    assert "  who: new" in lines


def test_what_differs_from_run_to_run_is_left_out(tmp_path: Path) -> None:
    answer = {"path": f"{tmp_path}/recording.zscope", "ratio": 0.1234567891234, "rows": (1, None)}
    assert corpus.normalised(answer, tmp_path) == {
        "path": "PLACE/recording.zscope", "ratio": 0.123456789, "rows": [1, None],
    }  # fmt: skip
