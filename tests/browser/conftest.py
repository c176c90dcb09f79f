"""One browser, one recording and one server for all tests of the page."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ViewportSize, sync_playwright
from tests.conftest import Needs
from tests.helpers import stage
from tests.helpers.stage import Recorded, Server
from tests.helpers.visit import Visit

PAGE = Path(__file__).parents[2] / "src/zombiescope/web/page/index.html"
WINDOW: ViewportSize = {"width": 1280, "height": 800}

Visitor = Callable[..., Visit]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = Needs().binary("chromium", "chromium")
    if not PAGE.exists():
        Needs().lack(f"needs the built page ({PAGE.parent}; make setup builds it)")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--force-color-profile=srgb", "--font-render-hinting=none"]
        )
        yield made
        made.close()


@pytest.fixture(scope="session")
def recorded(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    Needs().root()
    Needs().perf_events()
    return stage.record(tmp_path_factory.mktemp("browser") / "recording")


@pytest.fixture(scope="session")
def fix_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the server looks for what `fix` has done; nothing is there unless a test writes it."""
    place = tmp_path_factory.mktemp("fix")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZOMBIESCOPE_FIX_DIR", str(place))
        yield place / "actions.jsonl"


@pytest.fixture(scope="session")
def server(recorded: Recorded, fix_log: Path) -> Iterator[Server]:
    made = Server(recorded.directory)
    yield made
    ended = made.ended()
    made.kill()
    assert ended is None, ended


@pytest.fixture(scope="session")
def extent(server: Server) -> tuple[float, float]:
    """What the axis shows when nothing was chosen."""
    said: dict[str, Any] = json.loads(stage.answer(f"{server.origin}/api/v1/info"))
    return float(said["from"]), float(said["to"])


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    """Opens contexts; at the end each must have had a silent console and have asked nobody else."""
    visits: list[Visit] = []

    def come(origin: str, **options: Any) -> Visit:
        settings: dict[str, Any] = {"viewport": WINDOW, "color_scheme": "light", "reduced_motion": "reduce", **options}
        context = browser.new_context(**settings)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.add_init_script(f"sessionStorage.setItem('zombiescope.token', '{stage.TOKEN}')")
        visits.append(Visit(context, origin))
        return visits[-1]

    yield come
    for visit in visits:
        visit.leave()


@pytest.fixture
def visit(visitor: Visitor, server: Server) -> Visit:
    return visitor(server.origin)


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: $ZOMBIESCOPE_PICTURES, or beside the other files of this run."""
    asked = os.environ.get("ZOMBIESCOPE_PICTURES")
    place = Path(asked) if asked else tmp_path_factory.mktemp("pictures")
    place.mkdir(parents=True, exist_ok=True)
    return place
