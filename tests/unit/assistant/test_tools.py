"""Every tool answers within its budget, every fact has an id, and a wrong argument is answered in one line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zombiescope.assistant import answers
from zombiescope.assistant.fact import MOST_TOKENS, Answer, Fact, clock, tokens, written
from zombiescope.assistant.tools import TOOLS, Asked
from zombiescope.base.errors import UserError
from zombiescope.questions.views import DiagnoseQuestion
from zombiescope.web.recordings import Recordings


def keys(recordings: Recordings) -> list[str]:
    return [one["key"] for one in recordings.document()["recordings"] if one["from"] is not None]


def first(asked: Asked, node: str) -> str | None:
    found = asked.answer("incidents", {"node": node})["facts"]
    return found[0]["id"] if found else None


def test_every_answer_about_every_recording_fits(asked: Asked, recordings: Recordings) -> None:
    sizes: dict[str, list[int]] = {}
    for node in keys(recordings):
        for tool in TOOLS:
            given: dict[str, Any] = {"node": node} if tool.of_recording else {}
            if tool.name == "incident":
                if (known := first(asked, node)) is None:
                    continue
                given["id"] = known
            if tool.name in ("check", "fleet"):
                continue
            document = asked.answer(tool.name, given)
            sizes.setdefault(tool.name, []).append(tokens(written(document)))
            assert all(fact["id"] and fact["fact"] for fact in document["facts"])
            identities = [fact["id"] for fact in document["facts"]]
            assert len(set(identities)) == len(identities), (tool.name, node)
    assert {name for name, found in sizes.items() if max(found) > MOST_TOKENS} == set()


def test_the_incident_has_cause_evidence_and_fix(asked: Asked) -> None:
    found = asked.answer("incident", {"id": first(asked, "here")})
    assert (found["cause"], found["culprit"]) == (
        "zombie-memcg",
        "amazon-ecs-agent.service (amazon-ecs-agen, pid 2400)",
    ) or (found["cause"] == "zombie-memcg")
    assert found["hog"].startswith("kubelet")
    assert any("ruled out" in fact["fact"] for fact in found["facts"])
    assert any(fact["id"].endswith("/c1/1") for fact in found["facts"])
    assert found["fix"]


def test_a_document_that_does_not_fit_counts_what_it_leaves_out() -> None:
    facts = [
        Fact(f"fact/{number}", f"number {number} " + "word " * 40, 1_743_476_526.0 + number) for number in range(200)
    ]
    document = Answer({"node": "n"}, facts, ("source a", "source b"), "name a filter").document()
    assert tokens(written(document)) <= MOST_TOKENS
    assert document["facts"][0]["id"] == "fact/0"
    left_out = int(document["left_out"].split(";")[0])
    assert left_out == 200 - len(document["facts"])
    assert document["not_measured"] == ["source a", "source b"]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("nothing", {}),
        ("cores", {"nonsense": 1}),
        ("cores", {"hottest": "many"}),
        ("cores", {"hottest": 0}),
        ("cores", {"hottest": True}),
        ("cores", {"node": "another"}),
        ("cores", {"from": "yesterday"}),
        ("who_ran", {"by": "colour"}),
        ("who_ran", {"cpu": ["a"]}),
        ("who_ran", {"pid": 5}),
        ("stacks", {"match": "("}),
        ("stacks", {"match": "a" * 5_000}),
        ("events", {"kind": ["no_such_kind"]}),
        ("incident", {}),
        ("incident", {"id": "ffffffffff"}),
        ("fleet", {}),
        ("check", {}),
        ("check", {"measure": "busy"}),
        ("check", {"measure": "joy", "value": 1}),
        ("check", {"process": "kubelet", "measure": "busy", "value": 1}),
    ],
)
def test_what_cannot_be_asked_is_one_line(asked: Asked, name: str, given: dict[str, Any]) -> None:
    with pytest.raises(UserError) as error:
        asked.answer(name, given)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1_000


def test_the_schemas_are_small() -> None:
    """An assistant reads all of them before its first question."""
    every = json.dumps([[tool.name, tool.about, tool.schema()] for tool in TOOLS])
    assert tokens(every) < 6_000


def test_times_are_those_that_a_tool_takes(asked: Asked) -> None:
    found = asked.answer("worst_second", {})
    at = found["facts"][0]["at"]
    assert asked.answer("cores", {"at": at})["from"] == at
    assert clock(1_743_476_526.25) == "2025-04-01T03:02:06.250Z"


def test_a_diagnosis_for_an_assistant_is_the_worst_incident_whole_and_fits(recordings: Recordings) -> None:
    for key in keys(recordings):
        with recordings.named(key).reading() as recording:
            found = answers.diagnosed(recording, DiagnoseQuestion(), live=False)
        document = answers.digest(found).document()
        assert tokens(written(document)) <= MOST_TOKENS
        assert document["incidents"] == len(found["incidents"])
        if found["incidents"]:
            worst = found["incidents"][0]
            assert document["incident"] == worst["id"]
            assert document["facts"][0]["id"].startswith(str(worst["id"]))
            assert document["next"][-1] == f"zombiescope fix --incident {worst['id']}"
