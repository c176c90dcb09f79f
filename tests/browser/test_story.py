"""What the page is for: a core was starved for some seconds; see it, point at it, read the function."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.helpers.stage import HOT, Recorded
from tests.helpers.visit import Visit

pytestmark = pytest.mark.browser


def test_the_guilty_seconds_are_selected_with_the_mouse_and_the_hot_function_is_found(
    visit: Visit, recorded: Recorded, extent: tuple[float, float]
) -> None:
    visit.with_heat_map().go()
    visit.page.get_by_role("navigation", name="Pages").get_by_role("link", name="Node").click()
    visit.drawn()
    everything = visit.samples()
    # WHEN the seconds of the hog are selected on the strip
    low, high = recorded.guilty
    visit.drag(low, high, extent)
    # THEN the address, the words and the pictures are of those seconds
    assert visit.span() == pytest.approx((low, high), abs=0.1)
    visit.settled()
    words = visit.page.locator("#chosen-in-words")
    expect(words).to_contain_text(f"worst core {recorded.core}")
    assert 0 < visit.samples() < everything
    # AND on the core that was starved the searched function has nearly all of the time
    visit.button(f"Only core {recorded.core}").click()
    visit.settled()
    visit.find(HOT)
    matched = float(visit.matched.inner_text().split("%")[0])
    assert matched > 60
    visit.search.press("Enter")
    expect(visit.page.locator(".zs-flame [aria-live]")).to_contain_text("Match 1 of")
    expect(visit.page.locator(".zs-heat-legend")).to_contain_text(HOT)
