"""SARIF 2.1.0 as code hosts take it: no key that the specification does not have, and a place for every result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from zombiescope.audit import baseline, examine, rules, sarif
from zombiescope.audit.finding import Audit, EvidenceLine, Finding

ROOTS = Path(__file__).parents[2] / "fixtures" / "roots"

# Section 3 of the specification: the properties of the objects that we write, with the type of each.
_SHAPES: dict[str, dict[str, Any]] = {
    "log": {"$schema": str, "version": str, "runs": ["run"]},
    "run": {
        "tool": "tool", "columnKind": str, "originalUriBaseIds": dict, "invocations": ["invocation"],
        "results": ["result"],
    },
    "tool": {"driver": "component"},
    "component": {"name": str, "version": str, "rules": ["descriptor"]},
    "descriptor": {"id": str, "shortDescription": "message", "fullDescription": "message", "help": "message"},
    "invocation": {"executionSuccessful": bool, "toolExecutionNotifications": ["notification"]},
    "notification": {"level": str, "message": "message"},
    "message": {"text": str},
    "result": {
        "ruleId": str, "ruleIndex": int, "level": str, "message": "message", "locations": ["location"],
        "relatedLocations": ["location"], "partialFingerprints": dict, "suppressions": ["suppression"],
    },
    "location": {"id": int, "physicalLocation": "place", "message": "message"},
    "place": {"artifactLocation": "artifact", "region": "region"},
    "artifact": {"uri": str, "uriBaseId": str},
    "region": {"startLine": int},
    "suppression": {"kind": str, "status": str, "justification": str},
}  # fmt: skip


def check(value: Any, shape: Any, path: str = "$") -> None:
    if isinstance(shape, list):
        assert isinstance(value, list), path
        for number, item in enumerate(value):
            check(item, shape[0], f"{path}[{number}]")
    elif isinstance(shape, str):
        assert isinstance(value, dict), path
        strange = set(value) - set(_SHAPES[shape])
        assert not strange, f"{path}: {strange}"
        for key, item in value.items():
            check(item, _SHAPES[shape][key], f"{path}.{key}")
    else:
        assert isinstance(value, shape), path


def made(audit: Audit, allowed: bytes = b"") -> dict[str, Any]:
    split = baseline.split(audit.findings, baseline.parse(allowed, "allow"))
    document = sarif.document(audit, "1.2.3", split.new, split.allowed)
    assert json.loads(json.dumps(document)) == document
    return document


def test_the_document_has_the_shape_of_the_specification() -> None:
    audit = examine(ROOTS / "ubuntu-20.04-dlami")
    document = made(audit, b"late-watchdog  we look at the recorder instead\n")
    check(document, "log")
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    assert len(run["results"]) == len(audit.findings)
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [rule.ID for rule in rules.every()]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("note", "warning", "error")
        assert len(result["locations"]) == 1
        assert len(result["partialFingerprints"]) == 1
    (suppressed,) = [result for result in run["results"] if "suppressions" in result]
    assert suppressed["suppressions"][0]["justification"] == "we look at the recorder instead"


def test_places_are_relative_to_the_root_and_have_lines() -> None:
    document = made(examine(ROOTS / "ubuntu-20.04-dlami"))
    (result,) = [
        result
        for result in document["runs"][0]["results"]
        if result["partialFingerprints"] == {"zombiescopeFinding/v1": "endless-restart:ecs.service"}
    ]
    place = result["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "lib/systemd/system/ecs.service", "uriBaseId": "ROOT"},
        "region": {"startLine": 8},
    }
    for location in result["locations"] + result["relatedLocations"]:
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert (ROOTS / "ubuntu-20.04-dlami" / unquote(uri)).parent.exists()


def test_what_is_in_no_file_gets_a_place_too() -> None:
    finding = Finding(
        "auto-restart:a\\x2d b",
        "auto-restart",
        "a b.service",
        "critical",
        "why",
        (EvidenceLine("systemd: a", None, "x"),),
        (),
    )
    audit = Audit("/", True, (finding,), ())
    document = made(audit)
    check(document, "log")
    uri = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "etc/systemd/system/a%20b.service"


def test_every_place_has_a_line_because_hosts_want_one() -> None:
    for result in made(examine(ROOTS / "ubuntu-20.04-dlami"))["runs"][0]["results"]:
        for place in (*result["locations"], *result.get("relatedLocations", ())):
            assert place["physicalLocation"]["region"]["startLine"] >= 1


def test_blanks_of_an_accepted_line_may_be_tabs() -> None:
    (line,) = baseline.parse(b"late-watchdog\tthe host decides \n", "allow")
    assert (line.id, line.reason) == ("late-watchdog", "the host decides")
