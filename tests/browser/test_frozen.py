"""The report in one file: opened as a file, with the network off, it is the page."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Visitor
from tests.helpers.stage import COMMAND, HOT, Recorded
from tests.helpers.visit import Visit

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    done = subprocess.run(
        [*COMMAND, "diagnose", str(recorded.directory), "-o", str(file)], capture_output=True, text=True, timeout=120
    )
    assert file.exists(), done.stderr
    return file


@pytest.fixture
def opened(visitor: Visitor, report: Path) -> Visit:
    visit = visitor("file://", offline=True)
    visit.page.goto(report.as_uri())
    expect(visit.page.locator("main h1")).to_be_visible()
    return visit


def test_the_file_is_small_and_opens_with_the_diagnosis(opened: Visit, report: Path) -> None:
    assert report.stat().st_size < 1_000_000
    expect(opened.page.locator(".connection")).to_have_text("frozen")
    expect(opened.page.locator(".pg-station").first).to_be_visible()
    expect(opened.page.locator("main")).to_contain_text("hog")


def test_the_chain_leads_to_the_samples_in_the_file(
    opened: Visit, recorded: Recorded, extent: tuple[float, float]
) -> None:
    opened.page.locator(".pg-station.pg-is-hog").click()
    opened.drawn()
    assert opened.said("comm") == "hog"
    of_hog = opened.samples()
    opened.find(HOT)
    assert float(opened.matched.inner_text().split("%")[0]) > 60
    opened.search.press("Escape")
    opened.search.press("Escape")
    # a range by hand is folded by the page itself
    opened.page.keyboard.press("0")
    opened.wait_said("from", None)
    low, _ = recorded.guilty
    opened.drag(low, low + 1, extent)
    assert opened.span() == pytest.approx((low, low + 1), abs=0.3)
    opened.settled()
    assert 0 < opened.samples() < of_hog


def test_its_state_is_in_the_address_and_what_needs_a_server_says_so(
    opened: Visit, visitor: Visitor, report: Path
) -> None:
    opened.page.keyboard.press("g")
    opened.page.keyboard.press("n")
    opened.drawn()
    opened.find("read")
    opened.wait_said("q", "read")
    again = visitor("file://", offline=True, color_scheme="dark")
    again.page.goto(opened.page.url)
    again.drawn()
    expect(again.matched).to_have_text(opened.matched.inner_text())
    assert again.page.evaluate("document.documentElement.dataset.theme") == "dark"
    again.page.get_by_text("Save", exact=True).click()
    expect(again.page.get_by_role("menuitem")).to_have_text(["SVG"])
    again.page.get_by_role("link", name="Audit").click()
    expect(again.page.locator("main")).to_contain_text(re.compile("machine|frozen|file", re.IGNORECASE))
