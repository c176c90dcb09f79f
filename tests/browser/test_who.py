"""Who ran: the root level of the flame graph, the table, tracks on the axis, and what the filter boxes suggest."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect
from tests.helpers import stage
from tests.helpers.stage import Recorded, Server
from tests.helpers.visit import Visit

pytestmark = pytest.mark.browser


@pytest.fixture
def guilty(visit: Visit, recorded: Recorded) -> Visit:
    low, high = recorded.guilty
    return visit.node(f"sel={low:.3f}..{high:.3f}")


def test_the_root_level_is_switched_by_the_menu_and_by_a_key(guilty: Visit) -> None:
    everything = guilty.samples()
    guilty.page.get_by_label("Group by", exact=True).select_option("process")
    guilty.wait_said("group", "process")
    guilty.settled()
    assert guilty.samples() == everything
    x, y = guilty.frame(r"^hog \[\d+\]$")
    guilty.page.mouse.click(x, y)
    here = guilty.page.get_by_role("navigation", name="zoom").locator("[aria-current=location]")
    expect(here).to_have_text(re.compile(r"^hog \[\d+\]$"))
    # inverted, the owner stays the root
    guilty.page.keyboard.press("i")
    guilty.settled()
    guilty.frame(r"^hog \[\d+\]$")
    guilty.flame.focus()
    for group in ("thread", "none", None, "owner"):
        guilty.page.keyboard.press("p")
        guilty.wait_said("group", group)


def test_the_table_of_who_ran_says_what_the_command_says_and_filters(
    guilty: Visit, recorded: Recorded, server: Server
) -> None:
    guilty.page.keyboard.press("5")
    guilty.wait_said("view", "who")
    guilty.page.get_by_role("button", name="process", exact=True).click()
    row = guilty.page.get_by_role("row", name=re.compile(r"^hog \["))
    expect(row).to_be_visible()
    low, high = recorded.guilty
    said = json.loads(stage.answer(f"{server.origin}/api/v1/who?by=process&from={low:.3f}&to={high:.3f}"))
    hog = next(each for each in said["who"] if each["comm"] == "hog")
    expect(row).to_contain_text(f"{hog['cpus']:.2f}")
    expect(row).to_contain_text(str(hog["samples"]))
    row.get_by_role("button").click()
    guilty.wait_said("pid", str(hog["pid"]))
    guilty.page.keyboard.press("1")
    guilty.settled()
    assert guilty.samples() == hog["samples"]


def test_tracks_are_rows_of_the_axis_on_demand(guilty: Visit) -> None:
    labels = guilty.page.locator(".track-row .track-label")
    expect(labels).to_have_count(0)
    guilty.menu("View")
    guilty.page.get_by_role("combobox", name="Tracks", exact=True).select_option("process")
    guilty.wait_said("tracks", "process")
    hog = labels.filter(has_text=re.compile(r"^hog \["))
    expect(hog).to_have_count(1)
    drawn = guilty.page.locator(".track-row canvas").first.evaluate(
        "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(part => part > 0)"
    )
    assert drawn
    # the same x is the same moment in a track, on the axis and in the heat map
    left = [guilty.still(guilty.page.locator(each).first) for each in (".track-row canvas", ".strip")]
    assert (left[0]["x"], left[0]["width"]) == (left[1]["x"], left[1]["width"])
    hog.click()
    guilty.wait_said("pid", re.compile(r"^\d+$"))


def test_a_filter_box_suggests_who_ran(guilty: Visit) -> None:
    box = guilty.page.locator("#filter-text")
    box.focus()
    offered = guilty.page.locator("#filter-suggestions option")
    expect(offered.and_(guilty.page.locator("[value=hog]"))).to_have_count(1)
    box.fill("core:")
    expect(offered.first).to_have_attribute("value", "core:0")
    box.fill("process:")
    expect(offered.filter(has_text="hog")).to_have_count(1)
    guilty.page.get_by_label("Filter by").select_option("match")
    box.fill("")
    box.focus()
    expect(offered.first).to_have_attribute("value", re.compile("."))
