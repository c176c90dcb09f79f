"""Twenty busy loops, and then a fault: it is printed by `up`, listed by `status` and served to the page, all in time.

What is compared is the order of things: the incident is open when it is named and printed, it is served and listed,
and it is listed when it is over. The limits are against hanging only: a command that is started beside twenty loops,
while a real-time task has the other core, needs half a minute to begin.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.conftest import Needs
from tests.kernel.test_serve import Up, answer

from zombiescope.lab.scenario import by_id
from zombiescope.lab.scenario_run import stage
from zombiescope.store import incident_file

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(900)]

LOOPS = 20
FAULT = by_id("rt-hog")
AWAITED_S = 240.0
LOOP = "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (120, 120))\nwhile True: pass\n"
"""Ends by itself, whatever becomes of the test."""


@contextmanager
def load() -> Iterator[None]:
    """Beside the recorder, not below it: whoever waits for the CPU waits behind all of them."""
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.send_signal(signal.SIGKILL)
        for loop in loops:
            loop.wait()


class Page(NamedTuple):
    url: str
    token: str


@dataclass
class Story:
    """What was seen of one fault, and after how many seconds of it."""

    named_s: float
    printed_s: float
    listed_s: float
    served_s: float
    during: dict[str, Any]
    after: dict[str, Any]
    said: str
    id: str


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    Needs().perf_events()
    Needs().root()
    place = tmp_path_factory.mktemp("loaded")
    up = Up(place, "--listen", "127.0.0.1:0")
    try:
        said = up.wait_for("nothing wrong here? zombiescope demo")
        page = Page(*said.partition("the page: ")[2].splitlines()[0].split("#token="))
        node_dir = awaited(lambda: next(iter((place / "rec").glob("node=*")), None))
        awaited(lambda: answer(page.url, "/api/v1/info", page.token)[0] == 200)
        with load(), stage(FAULT, 120) as running:
            running.go()
            told = _told(up, place, page, node_dir, running.began_us / 1e6)
            running.stop()
        closed = awaited(lambda: _closed(place, told.id))
        yield Story(**{**vars(told), "after": closed, "said": up.log.read_text()})
    finally:
        up.stop()


def _told(up: Up, place: Path, page: Page, node_dir: Path, began_s: float) -> Story:
    """Somebody has the page open, somebody looks at what `up` prints, and asks for the status when it does."""

    def seen_s(wanted: Callable[[], Any]) -> float:
        awaited(wanted)
        return time.time() - began_s

    with ThreadPoolExecutor() as watchers:
        served = watchers.submit(seen_s, lambda: _named(_incidents(page)))
        entry = awaited(lambda: _named(incident_file.read(node_dir)))
        named_s = time.time() - began_s
        printed_s = seen_s(lambda: entry["id"] in up.log.read_text())
        listed_s = seen_s(lambda: _named(status(place)["incidents"]))
        served_s = served.result()
    sys.stdout.write(f"named {named_s:.1f} s, printed {printed_s:.1f}, served {served_s:.1f}, listed {listed_s:.1f}\n")
    return Story(named_s, printed_s, listed_s, served_s, entry, {}, "", str(entry["id"]))


def _incidents(page: Page) -> list[dict[str, Any]]:
    document: dict[str, Any] = json.loads(answer(page.url, "/api/v1/incidents", page.token)[1])
    time.sleep(0.9)
    incidents: list[dict[str, Any]] = document.get("incidents", [])
    return incidents


def awaited(wanted: Callable[[], Any]) -> Any:
    end = time.monotonic() + AWAITED_S
    while not (found := wanted()):
        assert time.monotonic() < end, f"not within {AWAITED_S} s"
        time.sleep(0.1)
    return found


def _named(entries: list[dict[str, Any]]) -> dict[str, Any] | None:
    right = (entry for entry in entries if entry["causes"] and entry["causes"][0]["pattern"] == FAULT.truth.pattern)
    return next(right, None)


def _closed(place: Path, wanted: str) -> dict[str, Any] | None:
    listed = (entry for entry in status(place)["incidents"] if entry["id"] == wanted)
    return next((entry for entry in listed if entry["state"] == "closed"), None)


def status(place: Path) -> dict[str, Any]:
    """In a session of its own, as in somebody's terminal; the loops are in that of `up`."""
    command = [sys.executable, "-m", "zombiescope.cli.main", "status", "--json"]
    environment = {**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(place / "run")}
    began_s = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, start_new_session=True)
    sys.stdout.write(f"status took {time.monotonic() - began_s:.1f} s\n")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_it_is_named_while_it_hurts_and_everybody_hears_of_it(story: Story) -> None:
    assert story.during["state"] == "open"
    assert story.during["causes"][0]["hog"]["comm"] == FAULT.truth.hog
    assert story.named_s <= story.printed_s <= story.listed_s


def test_it_is_printed_once(story: Story) -> None:
    assert story.said.count(f"incident {story.id};") == 1


def test_it_is_listed_when_it_is_over(story: Story) -> None:
    assert story.after["id"] == story.id
    assert story.after["to"] >= story.during["to"]


def test_no_look_failed(story: Story) -> None:
    assert "doctor" not in story.said
