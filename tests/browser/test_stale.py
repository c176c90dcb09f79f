"""The page never shows an old picture under a new question, and says which kind of empty it shows."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Route, expect
from tests.browser.conftest import Visitor
from tests.helpers.made import SECOND, START_US, Node, write_segment
from tests.helpers.recordings import Written, write_recording
from tests.helpers.stage import Server
from tests.helpers.visit import Visit

pytestmark = pytest.mark.browser

GONE = "ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_NETWORK_IO|ERR_INCOMPLETE_CHUNKED"
PROMPT_MS = 6_000
"""The page needs two seconds at most; a machine under test has other things to do."""
AWAY = re.compile(r"The server has not answered since \d\d:\d\d:\d\d")
CLOCK = r"\d\d:\d\d:\d\d(\.\d)?"


@pytest.fixture
def flight(tmp_path: Path, browser: Browser) -> Written:
    return write_recording(tmp_path / "flight", cpus=4, seconds=60)


@pytest.fixture
def server(flight: Written) -> Iterator[Server]:
    made = Server(flight.dir)
    yield made
    made.kill()


def at(second: float) -> float:
    """Of the recording, in Unix seconds."""
    return START_US / 1e6 + second


def picker(visit: Visit) -> Locator:
    """The list of recordings. The node page also has a button "Whole recording"."""
    return visit.page.get_by_role("combobox", name="Recording")


@pytest.mark.parametrize(("how", "scheme"), [("killed", "light"), ("stopped", "dark")])
def test_a_selection_that_is_not_answered_is_not_shown_as_if_it_were(
    server: Server, visitor: Visitor, how: str, scheme: str, pictures: Path
) -> None:
    visit = visitor(server.origin, color_scheme=scheme)
    visit.forgive(GONE)
    visit.node(f"sel={at(2)}..{at(12)}")
    before = visit.samples()
    # GIVEN a server that is away, of a recording that has ended
    server.kill() if how == "killed" else server.pause()
    # WHEN another second is selected
    visit.page.keyboard.press("e")
    # THEN the page says of which time its picture is, and why
    note = visit.page.locator(".samples-flames > .stale-note")
    expect(note).to_contain_text("The server does not answer. This is of the earlier selection", timeout=PROMPT_MS)
    expect(note).to_contain_text(re.compile(rf"{CLOCK} – {CLOCK}\.$"))
    expect(visit.page.get_by_role("alert").filter(has_text=AWAY)).to_contain_text(AWAY)
    assert visit.samples() == before, "the old picture may stay, and says what it is"
    visit.page.screenshot(path=pictures / f"stale-{scheme}.png")
    # AND the page reconnects by itself
    server.start() if how == "killed" else server.resume()
    expect(visit.page.locator(".stale-note")).to_have_count(0, timeout=20_000)
    expect(visit.page.get_by_text(AWAY)).to_have_count(0)
    visit.settled()
    assert visit.samples() < before


def test_incidents_of_an_ended_recording_come_by_themselves_once_the_server_is_back(
    server: Server, visitor: Visitor
) -> None:
    visit = visitor(server.origin)
    visit.forgive(GONE)
    visit.go("page=home")
    expect(visit.page.locator("main")).to_contain_text("What the average hid")
    server.kill()
    visit.page.get_by_role("link", name=re.compile("^Audit")).click()
    visit.page.get_by_role("link", name=re.compile("^Incidents")).click()
    expect(visit.page.get_by_role("alert").filter(has_text=AWAY)).to_be_visible(timeout=PROMPT_MS)
    expect(visit.page.locator(".pg-incidents")).to_have_count(0)
    server.start()
    expect(visit.page.locator(".pg-incidents")).to_be_visible(timeout=20_000)
    expect(visit.page.get_by_text(AWAY)).to_have_count(0)


def test_lanes_that_were_not_loaded_do_not_claim_that_nothing_happened(server: Server, visitor: Visitor) -> None:
    visit = visitor(server.origin)
    visit.forgive(GONE)
    visit.node(f"from={at(15)}&to={at(18)}")
    events = visit.page.get_by_role("group", name="Events")
    expect(events).to_have_text("no events in view")
    server.kill()
    visit.page.get_by_role("button", name="Whole recording").click()
    expect(visit.page.get_by_text(AWAY)).to_be_visible(timeout=PROMPT_MS)
    expect(events).to_have_text("not loaded")


def test_the_picture_that_is_on_its_way_is_named_and_dimmed(server: Server, visitor: Visitor) -> None:
    visit = visitor(server.origin)
    visit.node(f"sel={at(2)}..{at(12)}")

    def late(route: Route) -> None:
        time.sleep(2)
        route.continue_()

    visit.page.route("**/api/v1/flamegraph*", late)
    visit.page.keyboard.press("e")
    note = visit.page.locator(".samples-flames > .stale-note")
    expect(note).to_have_text(re.compile(rf"^Showing {CLOCK} – {CLOCK}, loading …$"))
    visit.settled()
    expect(visit.page.locator(".stale-note")).to_have_count(0)


# --- which empty -----------------------------------------------------------------------------------------------------


@pytest.fixture
def holes(tmp_path: Path, browser: Browser) -> Iterator[Server]:
    """A minute of which ten seconds have no samples, with a reason, and ten more in which nothing ran."""
    node = Node()
    stack, task = node.stack([node.frame("do_idle_not")]), node.task(7, "trainer")
    for second in range(1, 61):
        idle = 20 <= second <= 31
        node.core(START_US + second * SECOND, 0, user=0 if idle else 900)
        if not idle and not 40 <= second <= 51:
            node.sample(START_US + second * SECOND - SECOND // 2, 0, task, stack)
    lost = {"source": "stack samples", "why": "the rings were lost"}
    node.add("gaps", time=START_US + 39 * SECOND, end=START_US + 52 * SECOND, **lost)
    write_segment(tmp_path / "holes", node.tables)
    made = Server(tmp_path / "holes")
    yield made
    made.kill()


@pytest.mark.parametrize("view", ["flame", "who"])
@pytest.mark.parametrize(
    ("place", "says"),
    [
        (f"sel={at(42)}..{at(48)}", r"^No samples were recorded {a} – {b}: the rings were lost\.$"),
        (f"sel={at(22)}..{at(28)}", r"^No samples {a} – {b}: the node was idle, its cores 0% busy\.$"),
        (f"sel={at(2)}..{at(8)}&comm=nobody",
         r"^No sample of {a} – {b} matches the filters: name=nobody\. Remove the filters$"),
        (f"from={at(500)}&to={at(560)}&sel={at(510)}..{at(520)}",
         r"^\S+ {a} – {b} is outside of this recording: lab was recorded \S+ {a} – {b}\.$"),
    ],
    ids=["not recorded", "idle", "filtered", "outside"],
)  # fmt: skip
def test_an_empty_range_says_which_kind_of_empty(
    holes: Server, visitor: Visitor, place: str, says: str, view: str
) -> None:
    visit = visitor(holes.origin)
    visit.go(f"page=node&{place}&view={view}")
    said = visit.page.locator(".zs-empty")
    expect(said).to_have_text(re.compile(says.format(a=CLOCK, b=CLOCK)))
    if "comm=" in place:
        said.get_by_role("button", name="Remove the filters").click()
        expect(said).to_have_count(0)


def test_numbers_that_are_no_time_of_this_recording_are_outside_of_it(holes: Server, visitor: Visitor) -> None:
    visit = visitor(holes.origin)
    visit.go("page=node&from=1&to=2")
    expect(visit.page.locator(".zs-empty")).to_contain_text("is outside of this recording")
    expect(visit.page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize("place", ["page=node", "page=incidents", "page=home"])
def test_a_deleted_recording_is_named_on_every_page_and_in_the_picker(
    flight: Written, server: Server, visitor: Visitor, place: str
) -> None:
    visit = visitor(server.origin)
    visit.forgive("410")
    visit.go(place)
    expect(visit.page.locator("main :is(h1, .strip)").first).to_be_attached()
    shutil.move(flight.dir, flight.dir.with_name("elsewhere"))
    said = visit.page.locator("main").get_by_role("alert")
    if place == "page=node":
        visit.page.keyboard.press("e")  # any question notices it; otherwise it takes until the next look
    expect(said).to_contain_text(f"This recording was deleted or moved: {flight.dir}", timeout=40_000)
    visit.page.reload()
    expect(said).to_contain_text(f"This recording was deleted or moved: {flight.dir}")
    expect(picker(visit).locator("option").first).to_contain_text("deleted or moved")
    shutil.move(flight.dir.with_name("elsewhere"), flight.dir)
    expect(said).to_have_count(0, timeout=40_000)


def test_a_link_of_a_node_that_is_not_served_shows_no_other_node(
    tmp_path: Path, server: Server, visitor: Visitor
) -> None:
    write_recording(tmp_path / "other", seconds=30, node="gpu-17")
    with_both = Server(tmp_path / "other")
    try:
        # GIVEN a link without rec=, made where gpu-17 is the first recording
        there = visitor(with_both.origin)
        there.node(f"sel={at(2)}..{at(12)}")
        there.wait_said("node", "gpu-17")
        assert there.said("rec") is None
        place = there.page.url.partition("?")[2]
    finally:
        with_both.kill()
    there.forgive(GONE)
    # WHEN it is opened on a server of another node
    visit = visitor(server.origin)
    visit.go(place)
    expect(visit.page.locator("main")).to_contain_text("This link is of gpu-17, which is not served here")
    expect(visit.page.locator(".strip")).to_have_count(0)
    # THEN what is served is a choice, not an answer
    visit.page.locator("main").get_by_role("button", name="lab").click()
    visit.drawn()
    visit.wait_said("node", "lab")


def test_a_link_finds_its_node_where_it_is_served_under_another_key(tmp_path: Path, visitor: Visitor) -> None:
    for name in ("lab", "gpu-17"):
        write_recording(tmp_path / "both", seconds=30, node=name)
    both = Server(tmp_path / "both")
    try:
        visit = visitor(both.origin)
        visit.forgive(GONE)
        first = visit.go("page=node").wait_said("node", re.compile("."))
        other = {"lab": "gpu-17", "gpu-17": "lab"}[first]
        visit.node(f"node={other}&sel={at(2)}..{at(12)}")
        visit.wait_said("rec", other)  # the address follows up to 300 ms later
        expect(picker(visit)).to_have_value(other)
    finally:
        both.kill()


def test_two_recordings_of_one_node_differ_in_the_picker(
    tmp_path: Path, flight: Written, browser: Browser, visitor: Visitor
) -> None:
    write_recording(tmp_path / "wide192", seconds=20, start_us=START_US + 3600 * SECOND)
    both = Server(flight.dir, more=[tmp_path / "wide192"])
    try:
        visit = visitor(both.origin)
        visit.forgive(GONE)
        visit.go()
        options = picker(visit).locator("option")
        expect(options).to_have_count(3)
        first, second, _ = options.all_inner_texts()
        assert re.fullmatch(r"lab · flight · \d{4}-\d\d-\d\d \d\d:\d\d", first), first
        assert re.fullmatch(r"lab · wide192 · \d{4}-\d\d-\d\d \d\d:\d\d", second), second
        assert first[-5:] != second[-5:]
    finally:
        both.kill()
