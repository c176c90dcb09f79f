"""The pictures of the web UI in docs/pictures show the page of today: each has a file with the words on its page.

`make pictures` takes them again (ZOMBIESCOPE_REDRAW=1) and writes both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import ViewportSize, expect
from tests.browser.conftest import Visitor
from tests.browser.test_pictures import PLACES, done
from tests.helpers.recordings import write_recording
from tests.helpers.stage import Server

pytestmark = pytest.mark.browser

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
LAPTOP: ViewportSize = {"width": 1440, "height": 900}
SIZES: dict[str, ViewportSize] = {"incident": {"width": 1280, "height": 800}}


@pytest.fixture(scope="module")
def founding_case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server over some recording: it always lists the founding case, too."""
    place = tmp_path_factory.mktemp("pictures") / "rec"
    write_recording(place, seconds=20, cpus=2, hz=7)
    made = Server(place)
    yield made
    made.kill()


@pytest.mark.parametrize("name", sorted(path.stem.removeprefix("page-") for path in PICTURES.glob("page-*.png")))
def test_a_picture_of_the_docs_shows_the_page_of_today(visitor: Visitor, founding_case: Server, name: str) -> None:
    visit = visitor(founding_case.origin, viewport=SIZES.get(name, LAPTOP))
    visit.go(PLACES[name])
    if PLACES[name].startswith("page=node"):
        visit.drawn()
    else:
        expect(visit.page.locator("main :is(h1, strong)").first).to_be_visible()
    done(visit)
    words = " ".join(visit.page.locator("#main").inner_text().split()) + "\n"
    picture = PICTURES / f"page-{name}.png"
    if os.environ.get("ZOMBIESCOPE_REDRAW"):
        visit.page.screenshot(path=picture)
        picture.with_suffix(".txt").write_text(words)
    assert picture.with_suffix(".txt").read_text() == words, "run make pictures"
