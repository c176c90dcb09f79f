"""Whatever is asked, the answer is a document or one line that says what is wrong: never a defect, never a hang."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.helpers.page_server import PageServer
from tests.helpers.recordings import START_US

from zombiescope.web.description import markdown, openapi

DOCS = Path(__file__).parents[3] / "docs"
START = START_US / 1e6
DESCRIBED = openapi()
HEAVY = ("/api/v1/live", "/api/v1/audit", "/api/v1/incidents", "/api/v1/worst", "/api/v1/incidents/{id}/report")


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("cores?last=x", 400), ("cores?last=-5s", 400), ("cores?last=99999999999999999999d", 400),
        ("cores?from=yesterday", 400), ("cores?from=+30s&to=+10s", 400), ("cores?from=%2B30s&to=%2B10s", 400),
        ("cores?at=12:00&last=5s", 400), ("cores?from=9999-12-31T23:59:59", 400), ("cores?to=0001-01-01", 400),
        ("cores?from=25:00", 400), ("cores?hottest=0", 422), ("cores?hottest=a", 422), ("strip?columns=0", 422),
        ("strip?columns=99999999", 422), ("strip?columns=1e3", 422), ("heatmap?rows=100000", 422), ("heatmap?by=pie",
        422), ("heatmap?paint=(", 400), ("heatmap?paint=(?=a)", 400), ("flamegraph?match=[", 400),
        ("flamegraph?match=a{9999}", 400), ("flamegraph?cpu=x", 400), ("flamegraph?cpu=9-1", 400),
        ("flamegraph?cpu=0-99999999", 400), ("flamegraph?pid=-1", 422), ("flamegraph?pid=99999999999999999999", 422),
        ("flamegraph?mode=idle", 422), ("flamegraph?nodes=0", 422), ("flamegraph?against=x", 400),
        ("flamegraph?against=..", 400), ("flamegraph?against=%2B9s..%2B1s", 400), ("flamegraph?against=1..2", 400),
        ("flamechart", 400), ("flamechart?cpu=0-3", 400), ("flamechart?cpu=1&tid=2", 400), ("export", 422),
        ("export?format=docx", 422), ("history?days=0", 422), ("history?days=nan", 422), ("history?days=1e99", 422),
        ("history?step=1", 422), ("events?at_least=fatal", 422), ("functions?top=0", 422), ("diff", 422),
        ("incidents/x", 404), ("nothing", 404), ("", 404), ("live", 409), ("INFO", 404), ("info/", 404),
        ("cores?last=" + "9" * 5000 + "s", 422), ("flamegraph?match=" + "a" * 2000, 422), ("info?rec=%ff%fe", 404),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(server: PageServer, target: str, status: int) -> None:
    got = server.ask(f"/api/v1/{target}")
    assert got.status == status, got.body
    assert got.headers["content-type"] == "application/json"
    assert got.error["what"]
    assert "--" not in got.error["what"], "a parameter is not an option"


def test_an_expression_cannot_keep_the_server_busy(server: PageServer) -> None:
    """Python's own expressions take longer than the universe for this on a name of thirty letters."""
    evil = "((.+)+)+\\^$"
    assert server.api("flamegraph", match=evil).status == 200
    assert server.api("heatmap", paint="(a|aa|.)*(.*)*b{50}(.*)*(.*)*~").status == 200


def test_a_request_that_is_too_long_is_refused(server: PageServer) -> None:
    with suppress(ConnectionError):  # the server need not read it to its end
        assert server.ask("/api/v1/cores?last=" + "x" * 200_000).status in (400, 414, 431)
    assert server.api("info").status == 200


def _parameters(path: str) -> list[dict[str, Any]]:
    return [each for each in DESCRIBED["paths"][path]["get"].get("parameters", []) if each["in"] == "query"]


PATHS = [path for path, item in DESCRIBED["paths"].items() if "get" in item and path not in HEAVY]
NASTY = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["", "0", "-1", "1e309", "nan", "inf", "null", "true", "+0s", "+5s", "12:00", "9" * 30, "0" * 30, "..",
        "1..2", "+0s..+9s",
         "kernel", "here", "founding-case ", "*", "[", "(?i)x", "\\", "%", "\x00", "\ud800", "0-3", "3,1", "1e3",
         "5m", "1w", "1us", str(START + 5), str(START + 20), f"{START}..{START + 9}", "2025-10-09",
         "2025-10-09T08:54:00Z", "collapsed", "core"]
    ),
    st.integers().map(str),
    st.floats().map(str),
)  # fmt: skip


@st.composite
def requests(draw: st.DrawFn) -> str:
    """Any endpoint with any of its parameters, and some that it does not have."""
    path = draw(st.sampled_from(PATHS))
    names = [each["name"] for each in _parameters(path)] + ["rec", "nothing"]
    given = draw(st.lists(st.tuples(st.sampled_from(names), NASTY), max_size=4))
    query = urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in given])
    filled = path.replace("{id}", quote(draw(st.text(max_size=20)), safe=""))
    return f"{filled}?{query}" if query else filled


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(target=requests())
def test_garbage_is_never_a_defect(server: PageServer, target: str) -> None:
    got = server.ask(target)
    assert got.status < 500, (target, got.body)
    if got.status >= 400:
        assert got.error["what"]


def test_the_description_is_the_one_that_is_checked_in(server: PageServer) -> None:
    """`python -m zombiescope.web.description docs` writes both."""
    assert server.ask("/api/v1/openapi.json").document == DESCRIBED
    assert json.loads((DOCS / "api.json").read_text()) == DESCRIBED
    assert (DOCS / "api.md").read_text() == markdown(DESCRIBED)
    assert DESCRIBED["openapi"].startswith("3.1")


def test_every_endpoint_says_what_it_is_and_which_command_does_the_same() -> None:
    for path, item in DESCRIBED["paths"].items():
        for method, operation in item.items():
            assert operation.get("description"), path
            if method == "get":
                answer = operation["responses"]["200"]["description"]
                assert re.match(r"On the command line: `zombiescope [a-z]", answer)
                assert "4XX" in operation["responses"]
