"""The fifteen interactions that people who use profilers expect: events, keys, links, size, heat map."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.helpers.stage import HOT, Recorded, Server
from tests.helpers.visit import Visit

pytestmark = pytest.mark.browser

FOUNDING = "rec=founding-case"


def test_11_events_and_incidents_stand_on_the_same_axis_as_the_cores(visit: Visit) -> None:
    visit.node(FOUNDING)
    reset = visit.page.get_by_role("group", name="Events").get_by_role("button", name=re.compile("network card|paused"))
    expect(reset.first).to_be_visible()
    # THEN it stands where the axis has its second, and a click selects the seconds around it
    reset.first.hover()
    expect(visit.page.locator(".tip-events")).to_contain_text("paused for too long")
    reset.first.click()
    low, high = visit.span()
    visit.settled()
    expect(visit.page.locator("#chosen-in-words")).to_contain_text("worst core")
    assert 4 <= high - low < 600
    marked = visit.page.get_by_role("group", name="Incidents").get_by_role("button")
    expect(marked).to_have_count(1)
    marked.click()
    visit.wait_said("page", "incident")
    expect(visit.page.locator(".pg-path")).to_be_visible()


def test_12_everything_can_be_done_by_keys_and_help_lists_them(visit: Visit, extent: tuple[float, float]) -> None:
    keys = visit.node().page.keyboard
    keys.press("?")
    help_ = visit.page.get_by_role("dialog", name="Keys and mouse")
    expect(help_).to_contain_text("Select the worst second in view")
    keys.press("Escape")
    expect(visit.page.locator("dialog")).to_have_count(0)
    keys.press("w")
    low, high = visit.shown()
    assert high - low < extent[1] - extent[0]
    keys.press("0")
    visit.wait_said("from", None)
    keys.press("e")
    visit.span()
    keys.press("b")
    visit.span("cmp")
    keys.press("Escape")
    visit.wait_said("cmp", None)
    keys.press("Escape")
    visit.wait_said("sel", None)
    for key, name in (("2", "chart"), ("3", "sandwich"), ("4", "top"), ("5", "who"), ("1", None)):
        keys.press(key)
        visit.wait_said("view", name)
    keys.press("/")
    expect(visit.search).to_be_focused()
    keys.press("Escape")
    # the palette knows commands by name and times as people write them
    keys.press("Control+k")
    expect(visit.page.locator(".palette-input")).to_be_focused()
    keys.type("audit")
    expect(visit.page.locator("#palette-0")).to_contain_text("Audit")
    keys.press("Enter")
    visit.wait_said("page", "audit")
    expect(visit.page.locator("dialog")).to_have_count(0)
    keys.press("g")
    keys.press("n")
    visit.wait_said("page", "node")


def test_13_a_link_an_svg_a_file_for_other_viewers(visit: Visit, recorded: Recorded, server: Server) -> None:
    low, high = recorded.guilty
    visit.node(f"sel={low:.3f}..{high:.3f}&comm=hog")
    visit.page.keyboard.press("y")
    visit.page.wait_for_function("async () => (await navigator.clipboard.readText()).startsWith('http')")
    expect(visit.page.get_by_text("Link copied")).to_be_visible()
    link = str(visit.page.evaluate("navigator.clipboard.readText()"))
    assert all(part in link for part in ("rec=", "node=", "boot=")), link
    with visit.page.expect_download() as saved:
        visit.page.get_by_text("Save", exact=True).click()
        visit.page.get_by_role("menuitem", name="SVG").click()
    picture = Path(saved.value.path()).read_text()
    assert picture.startswith("<svg")
    assert "vfs_read" in picture
    with visit.page.expect_download() as saved:
        visit.page.get_by_role("menuitem", name="HTML").click()
    frozen = Path(saved.value.path()).read_text()
    assert 'id="frozen"' in frozen
    assert len(frozen) < 1_000_000
    with visit.page.expect_download() as saved:
        visit.page.get_by_role("menuitem", name="speedscope").click()
    other = Path(saved.value.path()).read_bytes()
    profile = json.loads(gzip.decompress(other) if other[:2] == b"\x1f\x8b" else other)
    assert "speedscope" in profile["$schema"]
    assert any(HOT in frame["name"] for frame in profile["shared"]["frames"])


def test_14_little_is_sent_and_what_was_left_out_is_said(visit: Visit) -> None:
    sizes: dict[str, int] = {}
    visit.page.on("response", lambda got: sizes.update({got.url: int(got.headers.get("content-length", 0))}))
    visit.node(FOUNDING)
    page = [size for url, size in sizes.items() if "/api/" not in url]
    answers = [size for url, size in sizes.items() if "/api/" in url]
    assert 0 < sum(page) < 300_000, "the page, compressed"
    assert sum(answers) < 1_500_000
    # fewer nodes asked for: the page says what is not there
    visit.page.route(
        "**/flamegraph?**", lambda route: route.continue_(url=re.sub(r"nodes=\d+", "nodes=20", route.request.url))
    )
    visit.node(f"{FOUNDING}&mode=kernel")
    expect(visit.page.locator(".zs-notes")).to_contain_text(
        re.compile(r"\d+ branch(es)? below [\d.]+% left out by the server")
    )


def test_15_the_search_paints_the_heat_map_which_has_rows_of_cores_or_of_parts_of_a_second(
    visit: Visit, recorded: Recorded
) -> None:
    visit.with_heat_map().node()
    blank = visit.page.locator(".zs-heat-box canvas").first.screenshot()
    visit.find(HOT)
    expect(visit.page.locator(".zs-heat-legend")).to_contain_text(HOT)
    visit.settled()
    assert visit.page.locator(".zs-heat-box canvas").first.screenshot() != blank
    # other rows of a second, then a row for each core
    visit.page.locator(".zs-heat .zs-choice select").select_option("100")
    expect(visit.page.locator(".zs-heat .zs-choice select")).to_have_value("100")
    visit.button("By core").click()
    visit.wait_said("by", "core")
    visit.settled()
    # a cell that is pointed at says how many of its samples match; on the hog's core, in its seconds, nearly all
    heat = visit.page.locator(".zs-heat-box canvas").last
    box = visit.still(heat)
    low, high = recorded.guilty
    x = visit.x_of((low + high) / 2, (recorded.start, recorded.end))
    visit.page.mouse.move(x, box["y"] + (box["height"] - 20) * 0.75)
    tip = visit.page.locator(".zs-tip")
    expect(tip).to_contain_text(f"core {recorded.core}")
    expect(tip).to_contain_text(re.compile(r"with a match\s*\d+ · (9\d|100|8\d)"))
