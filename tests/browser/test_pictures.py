"""What each page looks like, light and dark, on a laptop, a small screen and a telephone. For eyes: the test asserts
only that every page is there, with no part still loading, and that no page is wider than its screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import ViewportSize, expect
from tests.browser.conftest import Visitor
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
    "who": f"page=node&{GUILTY}&view=who&group=owner",
    "grouped": f"page=node&{GUILTY}&group=process&tracks=process",
    "incidents": f"page=incidents&{CASE}",
    "incident": f"page=incident&{CASE}",
    "cgroups": f"page=cgroups&{CASE}",
    "audit": "page=audit",
}
SIZES: dict[str, ViewportSize] = {
    "laptop": {"width": 1440, "height": 900},
    "small": {"width": 1024, "height": 768},
    "telephone": {"width": 390, "height": 844},
}
WHOLE = {"laptop": ("incident", "home"), "telephone": ("node", "incident")}
"""Those that are higher than the window are taken as a whole, too."""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_has_its_picture(
    visitor: Visitor, server: Server, recorded: Recorded, pictures: Path, scheme: str, size: str
) -> None:
    visit = visitor(server.origin, color_scheme=scheme, viewport=SIZES[size])
    low, high = recorded.guilty
    here = f"page=node&sel={low:.3f}..{high:.3f}&cpu={recorded.core}"
    for name, place in {**PLACES, "node-here": here, "unknown": "page=nowhere"}.items():
        visit.go(place)
        if place.startswith("page=node"):
            visit.drawn()
        else:
            expect(visit.page.locator("main :is(h1, strong)").first).to_be_visible()
        done(visit)
        visit.page.screenshot(path=pictures / f"{name}-{size}-{scheme}.png")
        wide = visit.page.evaluate("document.getElementById('main').scrollWidth - innerWidth")
        assert wide <= 0, f"{name} is {wide} px wider than a {size}"
        if name in WHOLE.get(size, ()):
            tall = visit.page.evaluate("document.getElementById('main').scrollHeight + 90")
            visit.page.set_viewport_size({**SIZES[size], "height": min(4000, int(tall))})
            done(visit)
            visit.page.screenshot(path=pictures / f"{name}-{size}-{scheme}-whole.png")
            visit.page.set_viewport_size(SIZES[size])
    visit.node(GUILTY)
    visit.page.keyboard.press("?")
    expect(visit.page.get_by_role("dialog")).to_be_visible()
    visit.page.screenshot(path=pictures / f"help-{size}-{scheme}.png")


def done(visit: Visit) -> None:
    expect(visit.page.locator(".loading, .pg-loading, [aria-busy=true], .skeleton")).to_have_count(0)
    visit.page.wait_for_load_state("networkidle")
    if visit.said("page") == "node":
        visit.settled()
        expect(visit.page.get_by_text(re.compile("^diagnosing"))).to_have_count(0)
