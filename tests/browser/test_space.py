"""Room for what matters: panes that are shared out and dragged, no line beyond a telephone; one key, one meaning; an
address that says where one is."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Visitor
from tests.helpers.stage import Recorded, Server
from tests.helpers.visit import Visit

pytestmark = pytest.mark.browser

CASE = "rec=founding-case&from=1743476512&to=1743476542&sel=1743476526..1743476532.6&cpu=39"
ROW_PX = 18


def rows_above_the_fold(visit: Visit) -> float:
    box = visit.still(visit.flame)
    height = float(visit.page.evaluate("innerHeight"))
    return (min(box["y"] + box["height"], height) - box["y"]) / ROW_PX


@pytest.mark.parametrize(("width", "height", "least"), [(1440, 900, 14), (1024, 768, 10)])
def test_the_flame_graph_has_room_on_a_laptop(
    visitor: Visitor, server: Server, width: int, height: int, least: int
) -> None:
    visit = visitor(server.origin, viewport={"width": width, "height": height})
    visit.node(CASE)
    assert rows_above_the_fold(visit) >= least
    assert visit.page.evaluate("document.getElementById('main').scrollHeight <= innerHeight"), "nothing to scroll"


def test_panes_are_dragged_and_remembered(visitor: Visitor, server: Server) -> None:
    visit = visitor(server.origin, viewport={"width": 1280, "height": 640})
    visit.node(CASE)
    before = rows_above_the_fold(visit)
    bar = visit.page.get_by_role("separator", name="Height of the time axis")
    box = visit.still(bar)
    visit.page.mouse.move(box["x"] + 200, box["y"] + 4)
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + 200, box["y"] - 70, steps=5)
    visit.page.mouse.up()
    visit.page.wait_for_function("() => localStorage.getItem('zombiescope.panes')")
    dragged = rows_above_the_fold(visit)
    assert dragged >= before + 2
    visit.page.reload()
    visit.drawn()
    assert rows_above_the_fold(visit) == pytest.approx(dragged, abs=1)
    # by keys, and back to what fits
    bar = visit.page.get_by_role("separator", name="Height of the heat map")
    bar.focus()
    for _ in range(3):
        visit.page.keyboard.press("ArrowDown")
    expect(bar).to_have_attribute("aria-valuenow", re.compile(r"\d+"))
    for name in ("heat map", "time axis"):
        visit.page.get_by_role("separator", name=f"Height of the {name}").dblclick()
    assert rows_above_the_fold(visit) == pytest.approx(before, abs=1)


def test_nothing_is_wider_than_a_telephone_nor_lies_on_another(visitor: Visitor, server: Server) -> None:
    visit = visitor(server.origin, viewport={"width": 390, "height": 844}, has_touch=True)
    for place in ("home", "incidents", "incident", "cgroups", "audit"):
        visit.go(f"page={place}&rec=founding-case")
        expect(visit.page.locator("main h1").first).to_be_visible()
        visit.page.wait_for_load_state("networkidle")
        wide = visit.page.evaluate("document.getElementById('main').scrollWidth - innerWidth")
        assert wide <= 0, f"{place} is {wide} px too wide"
    visit.node(CASE)
    assert visit.page.evaluate("document.getElementById('main').scrollWidth <= innerWidth")
    text, buttons = (
        visit.still(visit.page.locator(f".selection-bar {each}")) for each in (".selection-text", ".button-row")
    )
    assert text["y"] + text["height"] <= buttons["y"] + 1
    assert text["width"] > 300


def test_the_frame_that_was_zoomed_to_is_in_the_address(visit: Visit, visitor: Visitor, recorded: Recorded) -> None:
    low, high = recorded.guilty
    visit.node(f"sel={low:.3f}..{high:.3f}&comm=hog")
    x, y = visit.frame("^vfs_read$")
    visit.page.mouse.click(x, y)
    said = visit.wait_said("zoom", re.compile("vfs_read$"))
    other = visitor(visit.origin)
    other.page.goto(visit.page.url)
    other.drawn()
    here = other.page.get_by_role("navigation", name="zoom").locator("[aria-current=location]")
    expect(here).to_have_text("vfs_read")
    assert other.said("zoom") == said
    other.page.keyboard.press("Escape")
    other.wait_said("zoom", None)


def test_an_unknown_page_says_so(visit: Visit) -> None:
    visit.go("page=nodes")
    expect(visit.page.locator("main")).to_contain_text("There is no page called nodes")
    assert "No such page" in visit.page.title()
    visit.page.get_by_role("main").get_by_role("link", name="Home").click()
    visit.wait_said("page", "home")
    visit.forgive("404")
    got = visit.page.goto(f"{visit.origin}/nodes")
    assert got is not None
    assert got.status == 404
    expect(visit.page.locator("h1")).to_have_text("There is no such page here")
    visit.page.get_by_role("link").click()
    expect(visit.page.locator("main")).to_contain_text("What the average hid")


@pytest.mark.parametrize("focus", ["body", ".surface", ".zs-heat [tabindex]", ".zs-bars-scroll"])
def test_a_key_does_the_same_wherever_the_focus_is(visit: Visit, recorded: Recorded, focus: str) -> None:
    low, high = recorded.guilty
    visit.node(f"sel={low:.3f}..{high:.3f}&comm=hog")
    x, y = visit.frame("^vfs_read$")
    visit.page.mouse.click(x, y, button="right")
    visit.page.keyboard.press("Escape")  # the menu; the cursor stays on the frame
    keys = visit.page.keyboard

    def focused() -> None:
        if focus == "body":
            visit.page.evaluate("document.activeElement.blur()")
        else:
            visit.page.locator(focus).first.focus()

    focused()
    keys.press("m")
    visit.wait_said("do", re.compile("vfs_read"))
    focused()
    keys.press("u")
    visit.wait_said("do", None)
    focused()
    keys.press("b")
    visit.span("cmp")
    focused()
    keys.press("x")
    visit.page.wait_for_function("low => !location.search.includes('sel=' + low)", arg=f"{low:.3f}".rstrip("0"))
    focused()
    keys.press("f")
    expect(visit.page.locator("#filter-text")).to_be_focused()
    keys.press("Escape")
    focused()
    keys.press("w")
    visit.shown()
    focused()
    keys.press("0")
    visit.wait_said("from", None)
