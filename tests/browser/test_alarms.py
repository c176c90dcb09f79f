"""A part of the recorder that has failed is a banner on every page, and an ended recording says when it had failed."""

from __future__ import annotations

import fcntl
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.conftest import Visitor
from tests.helpers.made import SECOND, START_US, Node, write_segment
from tests.helpers.recordings import Written, write_recording
from tests.helpers.stage import Server

from zombiescope.store import health
from zombiescope.store.health import LIVE_DIAGNOSIS, RECORDER, Part

pytestmark = pytest.mark.browser

WORDS = re.compile(
    r"^Live diagnosis has failed since \d\d:\d\d:\d\d: SIGSEGV in a diagnosis pass\. Incidents are not detected\."
)


@pytest.fixture
def flight(tmp_path: Path, browser: Browser) -> Written:
    return write_recording(tmp_path / "flight", cpus=4, seconds=60)


class Publisher:
    """A thread that publishes as the recorder of a recording does, with the live diagnosis in a state."""

    def __init__(self, runtime: Path, node_dir: Path) -> None:
        self._path, self._node_dir = health.path_of(runtime, os.getpid()), node_dir
        self._part = Part(LIVE_DIAGNOSIS, "ok", time.time())
        self._over = threading.Event()
        self._publish()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def live_diagnosis(self, state: health.State, why: str = "") -> None:
        self._part = Part(LIVE_DIAGNOSIS, state, time.time(), why=why)

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.5):
            self._publish()

    def _publish(self) -> None:
        health.publish(self._path, RECORDER, self._node_dir, [self._part])


@pytest.fixture
def publisher(tmp_path: Path, flight: Written) -> Iterator[Publisher]:
    (tmp_path / "run").mkdir(mode=0o700)
    made = Publisher(tmp_path / "run", flight.node_dir)
    yield made
    made.end()


@pytest.fixture
def live(tmp_path: Path, flight: Written, publisher: Publisher) -> Iterator[Server]:
    """A server of a recording that is locked, as if a recorder wrote it."""
    with (flight.node_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = Server(flight.dir, environment={"ZOMBIESCOPE_RUNTIME_DIR": str(tmp_path / "run")})
        yield server
        server.kill()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_failed_part_is_a_banner_on_every_page_until_it_works_again(
    live: Server, publisher: Publisher, visitor: Visitor, pictures: Path, scheme: str
) -> None:
    visit = visitor(live.origin, color_scheme=scheme)
    visit.go("page=home")
    expect(visit.page.locator("main")).to_contain_text("Recording now")
    banner = visit.page.locator(".banner").filter(has_text=WORDS)
    expect(visit.page.locator(".banner")).to_have_count(0)
    # WHEN the live diagnosis fails
    publisher.live_diagnosis("failed", "SIGSEGV in a diagnosis pass")
    expect(banner).to_be_visible()
    expect(banner.get_by_role("button", name="Copy zombiescope selftest")).to_be_visible()
    expect(banner).to_contain_text("shows why.")
    visit.page.screenshot(path=pictures / f"banner-home-{scheme}.png")
    # THEN every page says so
    for place in ("Node", "Incidents", "Cgroups", "Audit"):
        visit.page.get_by_role("link", name=re.compile(f"^{place}")).click()
        expect(banner).to_be_visible()
        if place == "Node":
            visit.drawn()
            visit.page.screenshot(path=pictures / f"banner-node-{scheme}.png")
    # AND no page does once it works again
    publisher.live_diagnosis("ok", "SIGSEGV in a diagnosis pass")
    expect(visit.page.locator(".banner")).to_have_count(0)


def test_a_recorder_that_falls_silent_is_one_banner(live: Server, publisher: Publisher, visitor: Visitor) -> None:
    visit = visitor(live.origin)
    visit.go("page=incidents")
    expect(visit.page.locator("main")).to_contain_text("Incidents")
    publisher.end()
    banner = visit.page.locator(".banner")
    expect(banner).to_have_count(1, timeout=40_000)
    words = r"Recorder has not responded since \d\d:\d\d:\d\d: .*Nothing is recorded\."
    expect(banner).to_contain_text(re.compile(words))


@pytest.fixture
def failed(tmp_path: Path, browser: Browser) -> Iterator[Server]:
    """A recording that has ended, in which the live diagnosis failed nine times."""
    node = Node()
    for second in range(1, 61):
        node.core(START_US + second * SECOND, 0, user=50)
        if 10 <= second < 19:
            text = "a look of the doctor failed: -11"
            node.happen(START_US + second * SECOND, "helper_failed", "recorder", "warning", text)
    write_segment(tmp_path / "failed", node.tables)
    server = Server(tmp_path / "failed")
    yield server
    server.kill()


@pytest.mark.parametrize("place", ["home", "incidents"])
def test_an_ended_recording_says_how_often_its_live_diagnosis_failed(
    failed: Server, visitor: Visitor, place: str, pictures: Path
) -> None:
    visit = visitor(failed.origin)
    visit.go(f"page={place}")
    note = visit.page.get_by_role("note").filter(has_text="The live diagnosis failed 9 times while this was recorded")
    expect(note).to_contain_text("SIGSEGV")
    expect(note).to_contain_text("The incidents shown here were diagnosed now, from the recording.")
    visit.page.screenshot(path=pictures / f"outage-{place}.png")
    if place == "incidents":
        expect(visit.page.locator("main")).to_contain_text("live diagnosis: failed 9 times between")
