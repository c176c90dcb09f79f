"""The fifteen interactions that people who use profilers expect, one test each: those on the flame graph."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from tests.helpers.stage import HOT, Recorded
from tests.helpers.visit import Visit

pytestmark = pytest.mark.browser


@pytest.fixture
def guilty(visit: Visit, recorded: Recorded) -> Visit:
    """The node page on the seconds of the hog, on its core."""
    low, high = recorded.guilty
    return visit.node(f"sel={low:.3f}..{high:.3f}&cpu={recorded.core}")


def test_01_search_highlights_or_filters_says_how_much_and_goes_from_match_to_match(visit: Visit) -> None:
    guilty = visit.node()
    guilty.find("read|write|open")
    assert re.search(r"[\d.]+% matched\s+· ([2-9]|\d\d)", guilty.matched.inner_text())
    # Enter goes on, Shift+Enter back; beyond the first is the last
    guilty.search.press("Enter")
    expect(guilty.matched).to_contain_text("· 1 of ")
    guilty.search.press("Enter")
    expect(guilty.matched).to_contain_text("· 2 of ")
    guilty.search.press("Shift+Enter")
    expect(guilty.matched).to_contain_text("· 1 of ")
    # highlight leaves all samples, filter only those with a match
    everything = guilty.samples()
    guilty.button("Filter").click()
    guilty.wait_said("qmode", "filter")
    expect(guilty.flame).not_to_have_attribute("aria-label", re.compile(f"graph of {everything:,} "))
    assert 0 < guilty.samples() < everything
    guilty.wait_said("q", "read|write|open")
    # what is no expression is said, not thrown
    guilty.search.fill("(")
    expect(guilty.matched).to_have_text("not a regular expression")


def test_02_one_click_zooms_with_both_percentages_and_the_crumbs_lead_back(guilty: Visit) -> None:
    x, y = guilty.frame("^vfs_read$")
    guilty.page.keyboard.press("Escape")
    crumbs = guilty.page.get_by_role("navigation", name="zoom")
    guilty.page.mouse.click(x, y)
    expect(crumbs.locator("[aria-current=location]")).to_have_text("vfs_read")
    expect(crumbs).to_contain_text(re.compile(r"[\d.]+% of all · [\d.]+% of ksys_read"))
    # a frame below says both: its share of everything, and of what is zoomed to
    guilty.page.mouse.move(x, y + 18)
    tip = guilty.page.locator(".zs-tip")
    expect(tip).to_contain_text("of all")
    expect(tip).to_contain_text("of vfs_read")
    crumbs.get_by_role("button", name="ksys_read").click()
    expect(crumbs.locator("[aria-current=location]")).to_have_text("ksys_read")
    crumbs.get_by_role("button", name="Reset zoom").click()
    expect(crumbs.locator("[aria-current=location]")).to_have_text("all")


def test_03_icicle_or_flame_inverted_and_in_the_order_of_time(guilty: Visit) -> None:
    hanging = guilty.page.evaluate("document.querySelector('.zs-bars-scroll').scrollTop")
    assert hanging == 0
    guilty.menu("Graph")
    guilty.page.get_by_role("button", name="Root at the bottom").click()
    guilty.wait_said("icicle", "0")
    guilty.page.get_by_role("button", name="Inverted").click()
    guilty.wait_said("inv", "1")
    expect(guilty.flame).to_have_attribute("aria-label", re.compile("^Inverted flame graph"))
    guilty.tab("Timeline").click()
    guilty.wait_said("view", "chart")
    expect(guilty.flame).to_have_attribute("aria-label", re.compile("^Time-ordered chart"))
    expect(guilty.page.locator(".zs-axis span").first).to_be_visible()
    # a bar of the chart says when it ran, and its time can be selected
    box = guilty.still(guilty.flame)
    guilty.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 8, button="right")
    before = guilty.span()
    guilty.page.get_by_role("menuitem", name="Select this time").click()
    guilty.page.wait_for_function("was => !location.search.includes(was)", arg=f"sel={before[0]}..{before[1]}")


def test_04_the_table_sorts_is_filtered_by_the_search_and_leads_to_the_sandwich(guilty: Visit) -> None:
    guilty.tab("Functions").click()
    table = guilty.page.get_by_role("table")
    rows = table.get_by_role("row")
    hottest = rows.nth(1).locator(".zs-col-name").inner_text()
    table.get_by_role("button", name="Total").click()
    expect(table.get_by_role("columnheader", name="Total")).to_have_attribute("aria-sort", "descending")
    expect(rows.nth(1).locator(".zs-col-total b")).to_have_text(re.compile(r"^(9\d|100)"))
    guilty.find(HOT)
    expect(rows.nth(1)).to_contain_text(HOT)
    # a click marks it in the graph beside the table, a double click shows who calls it and what it calls
    rows.nth(1).click()
    guilty.wait_said("fn", re.compile(HOT))
    rows.nth(1).dblclick()
    guilty.wait_said("view", "sandwich")
    sandwich = guilty.page.locator(".zs-sandwich")
    expect(sandwich).to_contain_text("callers")
    expect(sandwich.locator("h3")).to_contain_text(re.compile(r"[\d.]+% of all samples"))
    expect(sandwich.locator("canvas")).to_have_count(2)
    assert hottest


def test_05_a_range_on_the_axis_or_the_heat_map_holds_for_every_view(
    visit: Visit, recorded: Recorded, extent: tuple[float, float]
) -> None:
    visit.with_heat_map().node()
    everything = visit.samples()
    low, high = recorded.guilty
    visit.drag(low, high, extent)
    assert visit.span() == pytest.approx((low, high), abs=0.1)
    visit.settled()
    selected = visit.samples()
    assert selected < everything
    # forward and back by its own length
    visit.page.keyboard.press("ArrowLeft")
    visit.page.wait_for_function("low => Number(location.search.split('sel=')[1]?.split('..')[0]) < low", arg=low - 1)
    assert visit.span() == pytest.approx((low - (high - low), low), abs=0.1)
    visit.menu("View")
    visit.button("Step right").click()
    visit.page.wait_for_function("low => Number(location.search.split('sel=')[1]?.split('..')[0]) > low", arg=low - 0.2)
    visit.settled()
    # a click on the heat map is one second
    before = visit.said("sel")
    visit.page.locator(".zs-heat-box canvas").last.click(position={"x": 400, "y": 60})
    visit.page.wait_for_function("was => !location.search.includes(was)", arg=f"sel={before}")
    start, end = visit.span()
    assert end - start == pytest.approx(1, abs=0.01)
    # and everything again
    visit.button("Clear").click()
    visit.wait_said("sel", None)
    visit.settled()
    assert visit.samples() == everything
    visit.page.mouse.move(640, 200)
    visit.page.keyboard.down("Control")
    visit.page.mouse.wheel(0, -300)
    visit.page.keyboard.up("Control")
    visit.wait_said("from", re.compile("."))
    visit.page.get_by_role("button", name="Whole recording").click()
    visit.wait_said("from", None)


def test_06_two_ranges_are_compared_in_red_and_blue_and_can_be_swapped(
    visit: Visit, recorded: Recorded, extent: tuple[float, float]
) -> None:
    low, high = recorded.guilty
    visit.node(f"sel={low:.3f}..{high:.3f}")
    visit.drag(extent[0] + 0.5, extent[0] + 3.5, extent, key="Shift")
    visit.span("cmp")
    visit.settled()
    expect(visit.flame).to_have_attribute("aria-label", re.compile("^Differential flame graph"))
    legend = visit.page.locator(".zs-legend")
    for word in ("more in A", "unchanged", "less in A", "only in B"):
        expect(legend).to_contain_text(word)
    x, y = visit.frame(HOT)
    visit.page.mouse.move(x, y)
    change = visit.page.locator(".zs-tip dl div", has_text="change")
    expect(change).to_contain_text(re.compile(r"\+[\d.]+ points, \+[\d.]+ cores"))
    # swapped, the same function shrank
    selection, other = visit.said("sel"), visit.said("cmp")
    visit.page.get_by_role("button", name="⇄ Swap").click()
    visit.wait_said("sel", other)
    visit.wait_said("cmp", selection)
    visit.settled()
    visit.tab("Functions").click()
    visit.find(HOT)
    expect(visit.page.locator(".zs-top-row .zs-shrank").first).to_contain_text("▼")


def test_07_filters_for_core_process_thread_unit_and_mode_hold_for_all_views(visit: Visit, recorded: Recorded) -> None:
    low, high = recorded.guilty
    visit.with_heat_map().node(f"sel={low:.3f}..{high:.3f}")
    everything = visit.samples()
    field = visit.page.locator("#filter-text")
    field.fill("hog")
    field.press("Enter")
    visit.wait_said("comm", "hog")
    visit.settled()
    expect(visit.page.get_by_role("list", name="Active filters")).to_contain_text("name hog")
    of_hog = visit.samples()
    assert 0 < of_hog < everything
    field.fill(f"core:{recorded.core}")
    field.press("Enter")
    visit.wait_said("cpu", str(recorded.core))
    visit.menu("View")
    visit.page.get_by_role("radio", name="user").click()
    visit.wait_said("mode", "user")
    visit.settled()
    expect(visit.page.locator(".zs-heat-legend")).not_to_contain_text(f"{of_hog:,} samples")
    # what is no filter is reported beside the field
    visit.page.get_by_label("Filter by").select_option(label="process")
    field.fill("not a number")
    field.press("Enter")
    expect(visit.page.get_by_role("alert")).to_be_visible()
    field.fill("")
    visit.page.get_by_role("button", name="Remove all").click()
    visit.wait_said("comm", None)
    visit.settled()
    assert visit.samples() == everything


def test_08_focus_drop_merge_collapse_and_take_back(guilty: Visit) -> None:
    everything = guilty.samples()
    chips = guilty.page.get_by_role("list", name="Transforms")

    def choose(item: str) -> None:
        x, y = guilty.frame("^vfs_read$")
        guilty.page.mouse.click(x, y, button="right")
        guilty.page.get_by_role("menuitem", name=item).click()

    choose("Drop samples with it")
    expect(chips.get_by_role("listitem")).to_have_count(1)
    guilty.wait_said("do", re.compile("vfs_read"))
    dropped = guilty.samples()
    assert dropped < everything
    chips.get_by_role("button", name=re.compile("^remove")).click()
    expect(chips).to_have_count(0)
    assert guilty.samples() == everything
    choose("Focus on this function")
    guilty.wait_said("do", re.compile("vfs_read"))
    assert guilty.samples() == everything - dropped
    # the key u takes the last one back, r collapses recursion
    guilty.flame.focus()
    guilty.page.keyboard.press("u")
    guilty.wait_said("do", None)
    guilty.page.keyboard.press("r")
    guilty.wait_said("do", "r:")
    guilty.menu("Graph")
    recursion = guilty.page.get_by_role("button", name="Collapse recursion")
    expect(recursion).to_have_attribute("aria-pressed", "true")
    guilty.page.keyboard.press("Escape")
    guilty.flame.focus()
    guilty.page.keyboard.press("r")
    guilty.wait_said("do", None)


def test_09_colours_by_kind_or_module_are_the_same_in_every_range_and_in_the_dark(
    guilty: Visit, recorded: Recorded
) -> None:
    def colour() -> str:
        guilty.tab("Functions").click()
        guilty.find("^vfs_read$")
        found = guilty.page.locator(".zs-top-row i.zs-dot").first.evaluate("dot => getComputedStyle(dot).background")
        return str(found)

    by_kind = colour()
    expect(guilty.page.locator(".zs-legend")).to_contain_text("kernel")
    guilty.button("Clear").click()
    guilty.settled()
    assert colour() == by_kind
    guilty.menu("Graph")
    guilty.page.get_by_label("Colour", exact=True).select_option("module")
    guilty.wait_said("colour", "module")
    guilty.page.keyboard.press("Escape")
    ground = guilty.page.evaluate("getComputedStyle(document.body).backgroundColor")
    guilty.page.get_by_role("button", name=re.compile("^Colours:")).click()
    guilty.page.get_by_role("button", name=re.compile("^Colours: light")).click()
    guilty.page.wait_for_function("was => getComputedStyle(document.body).backgroundColor !== was", arg=ground)
    assert guilty.page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_10_a_tooltip_says_everything_and_name_and_stack_can_be_copied(guilty: Visit) -> None:
    x, y = guilty.frame("^vfs_read$")
    guilty.page.mouse.move(x, y)
    tip = guilty.page.locator(".zs-tip")
    expect(tip).to_contain_text("vfs_read")
    expect(tip).to_contain_text(re.compile(r"kernel"))
    expect(tip).to_contain_text(re.compile(r"samples.*of all"))
    expect(tip).to_contain_text("self")
    expect(tip).to_contain_text("of the recording")
    guilty.page.mouse.click(x, y, button="right")
    guilty.page.get_by_role("menuitem", name="Copy name").click()
    guilty.page.wait_for_function("async () => await navigator.clipboard.readText() === 'vfs_read'")
    guilty.page.mouse.click(x, y, button="right")
    guilty.page.get_by_role("menuitem", name="Copy stack").click()
    guilty.page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('\\n')")
    stack = str(guilty.page.evaluate("navigator.clipboard.readText()")).splitlines()
    assert stack[-2:] == ["ksys_read", "vfs_read"]
    # narrow frames are hidden, and that is said
    guilty.page.get_by_role("button", name="Clear").click()
    guilty.page.get_by_role("button", name="Remove all").click()
    guilty.page.set_viewport_size({"width": 420, "height": 800})
    guilty.settled()
    expect(guilty.page.locator(".zs-notes")).to_contain_text(re.compile(r"\d+ frames? below 1 px hidden"))
