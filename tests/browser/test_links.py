"""What is looked at can be sent to somebody, looked at in the dark, and reached without a mouse."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Visitor
from tests.helpers.stage import HOT, Recorded, Server
from tests.helpers.visit import Visit

pytestmark = pytest.mark.browser


def test_a_link_opens_the_same_view_elsewhere(
    visit: Visit, visitor: Visitor, server: Server, recorded: Recorded, extent: tuple[float, float]
) -> None:
    # GIVEN a view that was made by hand: a range, another one to compare with, a filter, a search, a table by module
    low, high = recorded.guilty
    visit.node()
    visit.drag(low, high, extent)
    visit.drag(extent[0] + 0.5, extent[0] + 3, extent, key="Shift")
    visit.span("cmp")
    visit.button(f"Only core {recorded.core}").click()
    visit.tab("Functions").click()
    visit.find(HOT)
    visit.wait_said("q", HOT)
    visit.settled()
    # WHEN its address is opened by somebody else
    other = visitor(server.origin)
    other.page.goto(visit.page.url)
    other.drawn()
    expect(other.matched).to_be_visible()
    # THEN they see the same
    expect(other.matched).to_have_text(visit.matched.inner_text())
    assert other.page.url == visit.page.url
    for part in ("#chosen-in-words", ".chips", ".zs-top-body", ".zs-legend"):
        assert other.page.locator(part).first.inner_text() == visit.page.locator(part).first.inner_text()
    assert other.samples() == visit.samples()
    for canvas in (".strip", ".zs-heat-box canvas", ".zs-bars-room canvas"):
        assert pixels(other, canvas) == pixels(visit, canvas), canvas
    # AND back and forward go through what was done
    visit.page.go_back()
    visit.wait_said("view", None)
    visit.page.go_forward()
    visit.wait_said("view", "top")


def pixels(visit: Visit, canvas: str) -> str:
    return str(visit.page.locator(canvas).first.evaluate("canvas => canvas.toDataURL()"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_light_or_dark_as_the_system_says_and_as_the_switch_says(
    visitor: Visitor, server: Server, scheme: str
) -> None:
    visit = visitor(server.origin, color_scheme=scheme)
    visit.node()
    assert visit.page.evaluate("document.documentElement.dataset.theme") == scheme
    brightness = "Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    assert (visit.page.evaluate(brightness) > 128) == (scheme == "light")
    picture = pixels(visit, ".strip")
    visit.page.keyboard.press("t")
    other = "dark" if scheme == "light" else "light"
    visit.page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=other)
    assert pixels(visit, ".strip") != picture
    # it stays in this browser, and is not in the link
    visit.page.reload()
    visit.drawn()
    assert visit.page.evaluate("document.documentElement.dataset.theme") == other
    assert other not in visit.page.url


def test_by_keyboard_alone_from_home_to_the_function(visit: Visit, recorded: Recorded) -> None:
    visit.go()
    expect(visit.page.locator("main")).to_contain_text("What the average hid")
    keys = visit.page.keyboard
    # the first stop is a way around the navigation
    keys.press("Tab")
    expect(visit.page.locator(".skip")).to_be_focused()
    keys.press("Enter")
    expect(visit.page.locator("#main")).to_be_focused()
    keys.press("g")
    keys.press("n")
    visit.drawn()
    keys.press("e")
    low, _ = visit.span()
    assert recorded.hog_from - 1 <= low <= recorded.hog_to, "the worst second is the hog's"
    visit.settled()
    keys.press("/")
    keys.type(HOT)
    expect(visit.matched).to_contain_text("matched")
    keys.press("Enter")
    said = visit.page.locator(".zs-flame [aria-live]")
    expect(said).to_contain_text(HOT)
    # Tab reaches the graph; there arrows move, Enter zooms, a menu opens and closes
    for _ in range(40):
        if visit.page.evaluate("document.activeElement.classList.contains('zs-bars-scroll')"):
            break
        keys.press("Tab")
    expect(visit.flame).to_be_focused()
    keys.press("Enter")
    expect(visit.page.get_by_role("navigation", name="zoom").locator("[aria-current=location]")).to_contain_text(HOT)
    keys.press("ArrowUp")
    expect(said).to_contain_text("vfs_read")
    keys.press("Shift+F10")
    expect(visit.page.get_by_role("menuitem").first).to_be_focused()
    keys.press("Escape")
    expect(visit.page.get_by_role("menu")).to_have_count(0)
    expect(visit.flame).to_be_focused()
    keys.press("Shift+S")
    visit.wait_said("view", "sandwich")


def test_every_page_has_its_landmarks_and_every_control_a_name(visit: Visit) -> None:
    for place in ("home", "node", "incidents", "incident", "cgroups", "audit"):
        visit.go(f"page={place}")
        expect(visit.page.get_by_role("main")).to_be_visible()
        expect(visit.page.locator("main :is(h1, .strip)").first).to_be_visible()
        expect(visit.page.get_by_role("link", name=re.compile(place[:7], re.IGNORECASE)).first).to_be_attached()
        nameless = visit.page.evaluate(
            "[...document.querySelectorAll('button, a[href], input, select, [role=application]')].filter(each => "
            "!(each.ariaLabel || each.textContent.trim() || each.title || each.labels?.length || each.placeholder))"
            ".map(each => each.outerHTML.slice(0, 120))"
        )
        assert not nameless, place
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{place} is wider than 1280"
