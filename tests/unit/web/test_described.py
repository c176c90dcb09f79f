"""docs/api.json walked: every endpoint with every parameter, as it is declared and as it is not.

What a tool such as schemathesis would do, with hypothesis alone: that package brings thirty others for the same walk. A
value that the description allows is answered, or refused for what it says; one that it does not allow is refused; each
answer has a status and a media type that are described; and no request of another site, of another name or with a wrong
method gets anything, whatever the endpoint is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.helpers.page_server import Got, PageServer

DESCRIBED: dict[str, Any] = json.loads((Path(__file__).parents[3] / "docs" / "api.json").read_text())
GETS = {path: item["get"] for path, item in DESCRIBED["paths"].items() if "get" in item}
SLOW = {"/api/v1/live", "/api/v1/audit", "/api/v1/page", "/api/v1/incidents/{id}/report"}
"""Seconds each; the first has no end. Their refusals are walked with the others."""
EXAMPLES = {
    "last": "5s", "from": "+1s", "to": "+9s", "at": "+5s", "cpu": "0-2", "match": "vfs", "against": "+0s..+5s",
    "a": "+0s..+5s", "b": "+5s..+9s", "rec": "here", "paint": "vfs", "format": "collapsed", "last_": "5s",
}  # fmt: skip
"""Texts that mean something; a walk of letters alone would be refused at the door."""


def schema_of(parameter: dict[str, Any]) -> dict[str, Any]:
    schema = parameter["schema"]
    options = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    return dict(options[0])


def allowed(name: str, schema: dict[str, Any]) -> st.SearchStrategy[str]:
    """Values as the description has them."""
    if "enum" in schema or "const" in schema:
        return st.sampled_from([str(each) for each in schema.get("enum", [schema.get("const")])])
    kind = schema.get("type")
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        high = min(schema.get("maximum", 1_000), low + 1_000)
        return st.integers(int(low), max(int(low), int(high))).map(str)
    if kind == "boolean":
        return st.sampled_from(["true", "false"])
    if kind == "array":
        return allowed(name, schema["items"])
    longest = min(schema.get("maxLength", 40), 40)
    plain = st.text(max_size=longest)
    return st.one_of(st.just(EXAMPLES[name]), plain) if name in EXAMPLES else plain


def forbidden(schema: dict[str, Any]) -> list[str]:
    """Values that the description rules out."""
    kind = schema.get("type")
    if kind == "array":
        return forbidden(schema["items"])
    found = []
    if "enum" in schema or "const" in schema:
        found.append("no-such-word")
    if kind in ("integer", "number"):
        found += ["x", ""]
        found += [str(schema["minimum"] - 1)] if "minimum" in schema else []
        found += [str(schema["maximum"] + 1)] if "maximum" in schema else []
        found += [str(schema["exclusiveMinimum"])] if "exclusiveMinimum" in schema else []
    if kind == "boolean":
        found.append("perhaps")
    if kind == "string" and "maxLength" in schema:
        found.append("x" * (schema["maxLength"] + 1))
    return found


def parameters(path: str, place: str = "query") -> list[dict[str, Any]]:
    return [each for each in GETS[path].get("parameters", []) if each["in"] == place]


def target(path: str, given: list[tuple[str, str]], identity: str = "x") -> str:
    query = urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in given])
    filled = path.replace("{id}", quote(identity, safe=""))
    return f"{filled}?{query}" if query else filled


def is_described(path: str, got: Got) -> None:
    responses = GETS[path]["responses"]
    assert got.status < 500 or got.status == 503, got.body
    if got.status == 200:
        media = got.headers["content-type"].partition(";")[0]
        assert media in responses["200"]["content"] or path.endswith(("/export", "/page", "/report")), media
        if media == "application/json":
            assert str(got.document["schema"]).startswith("zombiescope.")
    else:
        assert "4XX" in responses
        assert got.error["what"]
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["cache-control"] != "public"


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, list[tuple[str, str]]]:
    path = draw(st.sampled_from(sorted(GETS.keys() - SLOW)))
    declared = parameters(path)
    chosen = [each for each in declared if each.get("required")]
    chosen += draw(st.lists(st.sampled_from(declared), max_size=3)) if declared else []
    return path, [(each["name"], draw(allowed(each["name"], schema_of(each)))) for each in chosen]


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(asked=questions())
def test_what_is_allowed_is_answered_as_described(server: PageServer, asked: tuple[str, list[tuple[str, str]]]) -> None:
    path, values = asked
    is_described(path, server.ask(target(path, values)))


FORBIDDEN = [
    (path, each["name"], value)
    for path in sorted(GETS)
    for each in parameters(path)
    for value in forbidden(schema_of(each))
]


def test_what_is_not_allowed_is_refused_at_the_door(server: PageServer) -> None:
    """All of them, on one server: none of it costs more than looking at the request."""
    assert len(FORBIDDEN) > 100
    wrong = []
    for path, name, value in FORBIDDEN:
        others = [each["name"] for each in parameters(path) if each.get("required") and each["name"] != name]
        got = server.ask(target(path, [*((other, EXAMPLES.get(other, "1")) for other in others), (name, value)]))
        if got.status not in (400, 404, 409, 422):
            wrong.append((path, name, value[:20], got.status))
    assert wrong == []


@pytest.mark.parametrize("path", sorted(GETS))
def test_no_endpoint_answers_another_site_another_name_or_another_method(server: PageServer, path: str) -> None:
    """DNS rebinding and cross-site requests, for every endpoint that there is: a new one is here by itself."""
    place = target(path, [])
    for status, headers in (
        (421, {"Host": f"evil.example:{server.port}"}),
        (421, {"Host": f"127.0.0.1.evil.example:{server.port}"}),
        (403, {"Origin": "http://evil.example"}),
        (403, {"Origin": "null"}),
        (403, {"Sec_Fetch_Site": "cross-site"}),
        (403, {"Sec_Fetch_Site": "same-site"}),
    ):
        got = server.ask(place, "GET", None, **headers)
        assert got.status == status, headers
        assert set(got.document) == {"error"}
        assert "access-control-allow-origin" not in got.headers
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert server.ask(place, method).status == 405


def test_a_wrong_token_tells_nothing(server: PageServer) -> None:
    """Of a server that asks for one, right beginnings and lengths are as wrong as anything else."""
    if server.token is None:
        pytest.skip("this server asks nobody")
    wrong = [server.token[:-1], f"{server.token}x", server.token[::-1], "", "x" * 60_000]
    answers = {server.ask("/api/v1/info", Authorization=f"Bearer {each}").body for each in wrong}
    assert len(answers) == 1
    # a missing one reads differently: one has to know whether to look for the token or for another one
    refused = server.ask("/api/v1/info", Authorization="Bearer wrong").error["what"]
    server.anonymous = True
    try:
        assert server.ask("/api/v1/info").error["what"] == "this server asks for a token"
        stale = server.ask("/api/v1/info", Authorization="Basic of.before").error["what"]
    finally:
        server.anonymous = False
    assert refused == stale
    assert refused.startswith("the token was refused: it is of another server, or of an earlier start of this one")
