"""The page of a recorder that runs: it follows, says when the server is gone, and recovers. And who may ask."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.conftest import WINDOW, Visitor
from tests.conftest import Needs
from tests.helpers.recorder_process import recording
from tests.helpers.stage import Recorded, Server
from tests.helpers.visit import Visit

pytestmark = pytest.mark.browser

GONE = "ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_NETWORK_IO"
ADDRESS = "198.51.100.7"
"""Documentation's (RFC 5737): nobody's, and here that of a network of its own."""


@pytest.fixture
def live(tmp_path: Path, browser: Browser, needs: Needs) -> Iterator[Server]:
    needs.perf_events()
    with recording(tmp_path / "live", interval_s=0.5):
        server = Server(tmp_path / "live")
        yield server
        server.kill()


def test_the_tail_moves_can_be_paused_and_outlives_the_server(live: Server, visitor: Visitor) -> None:
    visit = visitor(live.origin)
    visit.forgive(GONE)
    visit.go("page=node")
    state = visit.page.locator(".connection")
    expect(state).to_have_text("recording")
    shown = visit.page.locator(".toolbar .range")

    def moves() -> None:
        """A second more is on the strip."""
        strip = "document.querySelector('.strip').toDataURL()"
        visit.page.wait_for_function(f"was => {strip} !== was", arg=visit.page.evaluate(strip))

    moves()
    # paused, the axis stands still although ticks come in
    visit.page.get_by_role("button", name="Live").click()
    visit.shown()
    expect(visit.page.get_by_role("button", name="Paused")).to_be_visible()
    paused = shown.inner_text()
    visit.page.wait_for_timeout(2500)
    assert shown.inner_text() == paused
    visit.page.keyboard.press("l")
    moves()
    # WHEN the server is killed
    live.kill()
    expect(state).to_contain_text("connection lost")
    expect(visit.page.locator(".strip")).to_be_visible()
    # THEN the page says so, keeps what it has, and goes on by itself when there is a server again
    live.start()
    expect(state).to_have_text("recording", timeout=40_000)
    moves()


def test_a_server_with_another_token_says_that_one_has_to_sign_in(live: Server, visitor: Visitor) -> None:
    visit = visitor(live.origin)
    visit.forgive(f"{GONE}|401")
    visit.go("page=node")
    state = visit.page.locator(".connection")
    expect(state).to_have_text("recording")
    live.kill()
    live.token = "another-token-of-these-tests"
    live.start()
    expect(state).to_contain_text("sign in again", timeout=40_000)
    visit.page.wait_for_timeout(5000)  # the tries that follow do not make a lost connection of it
    expect(state).to_contain_text("sign in again")


def test_home_of_a_running_recorder_is_never_empty(live: Server, visitor: Visitor) -> None:
    visit = visitor(live.origin)
    visit.go()
    main = visit.page.locator("main")
    expect(main).to_contain_text("Recording now")
    expect(main).to_contain_text(re.compile(r"core \d+ at \d\d:\d\d:\d\d"))
    expect(main).to_contain_text("What the average hid")


# --- who may ask -----------------------------------------------------------------------------------------------------


@pytest.fixture
def fenced(browser: Browser, recorded: Recorded, tmp_path: Path, needs: Needs) -> Iterator[tuple[Server, Browser]]:
    """A server on an address that is not the loopback, and a browser, both in a network that is theirs alone."""
    chromium = needs.binary("chromium", "chromium")
    for tool in ("unshare", "nsenter"):
        needs.binary(tool, "util-linux")
    needs.binary("ip", "iproute2")
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", f"ip link set lo up && ip addr add {ADDRESS}/32 dev lo && echo up && read _"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == "up\n"
    enter = ("nsenter", f"--net=/proc/{holder.pid}/ns/net")
    wrapped = tmp_path / "chromium"
    wrapped.write_text(f'#!/bin/sh\nexec {" ".join(enter)} {chromium} "$@"\n')
    wrapped.chmod(0o755)
    server = Server(recorded.directory, listen=f"{ADDRESS}:8321", prefix=enter)
    try:
        made = browser.browser_type.launch(executable_path=str(wrapped), args=["--no-sandbox"])
        yield server, made
        made.close()
    finally:
        server.kill()
        holder.communicate("\n")


def test_another_address_asks_for_the_token_that_was_shown_once(fenced: tuple[Server, Browser]) -> None:
    server, browser = fenced
    assert "#token=" in server.url
    visit = Visit(browser.new_context(viewport=WINDOW), server.origin)
    # the printed address: the token leaves the address bar, and the page works, downloads included
    visit.page.goto(server.url)
    expect(visit.page.locator("main")).to_contain_text("What the average hid")
    assert "token" not in visit.page.url
    visit.node()
    visit.page.get_by_text("Save", exact=True).click()
    with visit.page.expect_download() as saved:
        visit.page.get_by_role("menuitem", name="collapsed").click()
    assert Path(saved.value.path()).stat().st_size > 0
    visit.page.reload()
    visit.drawn()
    visit.leave()
    # a wrong one is not taken for a missing one
    guess = Visit(browser.new_context(viewport=WINDOW), server.origin)
    guess.forgive("401")
    guess.page.goto(f"{server.origin}/#token=wrong")
    expect(guess.page.locator("main")).to_contain_text("The token was refused")
    guess.leave()
    # without it there is a page that says how to get in, and no data
    stranger = Visit(browser.new_context(viewport=WINDOW), server.origin)
    stranger.forgive("401")
    stranger.go()
    expect(stranger.page.get_by_role("alert").or_(stranger.page.locator("main"))).to_contain_text("token")
    answer = stranger.page.evaluate("fetch('/api/v1/info').then(async got => [got.status, await got.json()])")
    assert answer[0] == 401
    assert "error" in answer[1], json.dumps(answer)
    stranger.leave()
