"""What each page looks like, light and dark, at the size of a small screen. For eyes: the test asserts only that every
page is there, with no part still loading."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import WINDOW, Visitor
from tests.helpers.stage import Recorded, Server
from tests.helpers.visit import Visit

pytestmark = pytest.mark.browser

CASE = "rec=founding-case"
GUILTY = f"{CASE}&from=1743476512&to=1743476542&sel=1743476526..1743476532.6"
"""The half minute that was recorded of the founding case, and the seconds in which core 39 was lost."""
PLACES = {
    "home": "page=home",
    "node": f"page=node&{GUILTY}&cpu=39&q=mem_cgroup_nr_lru_pages",
    "compare": f"page=node&{GUILTY}&cmp=1743476513..1743476523",
    "chart": f"page=node&{GUILTY}&cpu=39&view=chart",
    "sandwich": f"page=node&{GUILTY}&view=sandwich&fn=mem_cgroup_nr_lru_pages",
    "functions": f"page=node&{GUILTY}&view=top&colour=module",
    "cores": f"page=node&{GUILTY}&by=core",
    "incidents": f"page=incidents&{CASE}",
    "incident": f"page=incident&{CASE}",
    "cgroups": f"page=cgroups&{CASE}",
    "audit": "page=audit",
}
WHOLE = {"node": 1100, "compare": 1180, "incident": 1500, "functions": 1240, "chart": 1100, "sandwich": 1240}
"""Those that are higher than the window are taken as a whole, too: their height."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_has_its_picture(
    visitor: Visitor, server: Server, recorded: Recorded, pictures: Path, scheme: str
) -> None:
    visit = visitor(server.origin, color_scheme=scheme)
    low, high = recorded.guilty
    here = f"page=node&sel={low:.3f}..{high:.3f}&cpu={recorded.core}"
    for name, place in {**PLACES, "node-here": here}.items():
        visit.go(place)
        if place.startswith("page=node"):
            visit.drawn()
        else:
            expect(visit.page.locator("main h1").first).to_be_visible()
        done(visit)
        visit.page.screenshot(path=pictures / f"{name}-{scheme}.png")
        if name in WHOLE:
            visit.page.set_viewport_size({"width": 1280, "height": WHOLE[name]})
            done(visit)
            visit.page.screenshot(path=pictures / f"{name}-{scheme}-whole.png")
            visit.page.set_viewport_size(WINDOW)
    visit.node(GUILTY)
    visit.page.keyboard.press("?")
    expect(visit.page.get_by_role("dialog")).to_be_visible()
    visit.page.screenshot(path=pictures / f"help-{scheme}.png")


def done(visit: Visit) -> None:
    expect(visit.page.locator(".loading, .pg-loading, [aria-busy=true], .skeleton")).to_have_count(0)
    visit.page.wait_for_load_state("networkidle")
    if visit.said("page") == "node":
        visit.settled()
