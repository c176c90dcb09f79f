"""What the server holds for its clients has an end: answers, lines in front of work, files that are being sent."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from tests.helpers.page_server import PageServer

from zombiescope.web.endpoints.export import MOST_DOWNLOADS, _Downloads, _pieces
from zombiescope.web.follower import MOST_WAITING, Follower, Watcher
from zombiescope.web.refusal import Refusal
from zombiescope.web.responder import ConcurrencyLimit as Turnstile
from zombiescope.web.response_cache import Representation, ResponseCache


def answer(body: bytes = b"{}") -> Representation:
    return Representation("application/json", body, "tag")


def test_the_cache_holds_a_number_of_answers_however_small() -> None:
    cache = ResponseCache(most_bytes=1_000, most_answers=10)
    for number in range(100):
        cache.get((number,), answer)
    assert len(cache) == 10
    for number in range(100):
        cache.get((number, "large"), lambda: answer(b"x" * 200))
    assert len(cache) == 5


def test_a_made_up_parameter_is_the_same_question(server: PageServer) -> None:
    """And its text is not kept: a key is a digest."""
    first = server.api("cores")
    again = server.api("cores", nothing="x" * 30_000)
    assert first.status == again.status == 200
    assert first.headers["etag"] == again.headers["etag"]


def test_keys_are_small_and_know_only_what_is_declared() -> None:
    from zombiescope.web import responder

    class Held:
        key, generation = "here", 3

        def settled(self, _: object) -> bool:
            return False

    class Window:
        fixed_end_us = None

    class Route:
        declared_names = frozenset({"from", "to"})

    def key(query: str) -> tuple[Any, ...]:
        scope = {
            "type": "http",
            "path": "/api/v1/cores",
            "query_string": query.encode(),
            "headers": [],
            "route": Route(),
        }
        return responder._key(Request(scope), Held(), Window())  # type: ignore[arg-type]

    plain = key("from=1&to=2")
    assert key("to=2&from=1") == plain
    assert key("from=1&to=2&nothing=" + "x" * 60_000) == plain
    assert key("from=1&to=3") != plain
    assert key("from=1&from=1&to=2") != plain
    assert sum(len(str(part)) for part in key("from=" + "9" * 60_000)) < 200


def refused(turns: Turnstile) -> bool:
    try:
        with turns.turn():
            return False
    except Refusal as refusal:
        return refusal.status == 503


def test_a_line_that_is_too_long_is_refused_and_the_place_is_given_back() -> None:
    turns = Turnstile(working=1, waiting=1)
    inside, may_go = threading.Event(), threading.Event()

    def work() -> None:
        with turns.turn():
            inside.set()
            may_go.wait(30)

    threads = [threading.Thread(target=work) for _ in range(2)]
    threads[0].start()
    assert inside.wait(30)
    threads[1].start()
    end = time.monotonic() + 30
    while not refused(turns):  # until the second stands in line
        assert time.monotonic() < end
    may_go.set()
    for thread in threads:
        thread.join(30)
    with turns.turn():
        pass


def test_exports_that_are_on_their_way_are_counted() -> None:
    downloads = _Downloads()
    held = []
    for _ in range(MOST_DOWNLOADS):
        with downloads.place() as place:
            held.append(place)
    with pytest.raises(Refusal, match="already"), downloads.place():
        pass
    # WHEN one is sent, one is broken off in the middle, and one is never begun
    held[0].file.write(b"x" * 200_000)
    assert sum(map(len, _pieces(held.pop(0)))) == 200_000
    held[0].file.write(b"x" * 200_000)
    broken = _pieces(held.pop(0))
    next(broken)
    del broken
    held.pop(0)
    gc.collect()
    # THEN there is room for three
    for _ in range(3):
        with downloads.place() as place:
            held.append(place)
    with pytest.raises(Refusal), downloads.place():
        pass


def test_an_export_that_fails_gives_its_place_back() -> None:
    downloads = _Downloads(1)
    for _ in range(3):
        with suppress(ValueError), downloads.place() as place:
            file = place.file
            raise ValueError("no")
        assert file.closed


def test_a_watcher_that_is_behind_is_let_go_of_once() -> None:
    async def fill() -> list[str | None]:
        watcher = Watcher()
        for number in range(10 * MOST_WAITING):
            watcher.send(str(number))
        await asyncio.sleep(0)
        return [watcher.queue.get_nowait() for _ in range(watcher.queue.qsize())]

    got = asyncio.run(fill())
    assert len(got) == MOST_WAITING + 1
    assert got[-1] is None
    assert None not in got[:-1]


def test_a_thousand_that_come_at_once_do_not_all_watch(tmp_path: Path) -> None:
    async def come() -> list[bool]:
        return [follower.add(Watcher(), 50) for _ in range(1_000)]

    follower = Follower(tmp_path)
    assert sum(asyncio.run(come())) == 50
    assert follower.watched == 50
    follower.end()
