"""How long we wait for an API server, and that it is said once."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from zombiescope.base.packages import install
from zombiescope.node.cluster import access
from zombiescope.node.cluster.access import Access, ClusterError
from zombiescope.node.cluster.backoff import Backoff, Outage


class Answer:
    def __init__(self, code: int, **headers: str) -> None:
        self.status_code, self.headers = code, headers


class RefusedError(Exception):
    def __init__(self, code: int, **headers: Any) -> None:
        super().__init__(f"refused {code}")
        self.response = Answer(code, **headers)


def test_it_grows_to_a_minute_and_begins_anew() -> None:
    backoff = Backoff(lambda: 1.0)
    waits = [backoff.delay_s(OSError()) for _ in range(12)]
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == 60
    backoff.worked()
    assert backoff.delay_s(OSError()) == 1


def test_a_thousand_nodes_do_not_come_back_together() -> None:
    waits = {round(Backoff().delay_s(OSError()), 3) for _ in range(100)}
    assert len(waits) > 50


def test_what_the_server_asks_for_is_waited() -> None:
    error = RefusedError(429, **{"Retry-After": "17"})
    assert Backoff(lambda: 0.0).delay_s(error) >= 17


@pytest.mark.parametrize("said", ["", "soon", "-1", "9" * 400, "1e9"])
def test_a_wait_that_is_no_number_is_none(said: str) -> None:
    assert access.retry_after_s(RefusedError(429, **{"Retry-After": said})) is None


def test_a_refusal_is_not_asked_for_every_second() -> None:
    assert Backoff(lambda: 0.0).delay_s(RefusedError(403)) >= 30


def test_an_hour_away_is_two_lines() -> None:
    lines: list[str] = []
    now = [0.0]
    outage = Outage(lines.append, lambda: now[0])
    for _ in range(100):
        outage.failed(OSError("Connection refused"), "reading pods")
    now[0] = 3600.0
    assert outage.lasts_s == 3600
    outage.worked()
    outage.worked()
    assert lines == [
        "reading pods not possible: Connection refused; trying again",
        "the API server answers again after 3600 s",
    ]


def test_another_reason_is_said() -> None:
    lines: list[str] = []
    outage = Outage(lines.append)
    outage.failed(OSError("away"), "reading pods")
    outage.failed(RefusedError(403), "reading pods")
    assert len(lines) == 2
    assert "docs/kubernetes.md" in lines[1]


@pytest.mark.parametrize("text", ["", "{", "[]", "a: [", "clusters: 7\ncontexts: x\n", "current-context: c"])
def test_a_kubeconfig_that_is_none_is_one_line(tmp_path: Any, text: str) -> None:
    pytest.importorskip("lightkube")
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ClusterError) as raised:
        Access(str(path)).client()
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_without_the_extra_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightkube", None)
    with pytest.raises(ClusterError) as raised:
        Access().client()
    assert install("cluster") in str(raised.value)


def test_an_error_is_one_bounded_line() -> None:
    assert access.brief(ValueError("a\x1b[2J\nb" * 500)).isprintable()
    assert len(access.brief(ValueError("x" * 5000))) == 300
