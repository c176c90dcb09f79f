"""A person at the page: mouse, keys and eyes, over a real browser. It also sees what a person does not: what the
console says, and which hosts are asked."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Request, expect

WAIT_MS = 20_000
STILL_FRAMES = 12
expect.set_options(timeout=WAIT_MS)


class Visit:
    """One page in a context of its own. `leave` asserts that nothing went wrong unseen."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.context = context
        self.origin = origin
        self._wrong: list[str] = []
        self._forgiven: list[str] = []
        context.set_default_timeout(WAIT_MS)
        self.page = context.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self._wrong.append(f"exception: {error}"))
        context.on("request", self._asked)

    # --- going ------------------------------------------------------------------------------------------------------

    def go(self, place: str = "") -> Visit:
        """`place` is the query of the address: page=node&rec=..."""
        self.page.goto(f"{self.origin}/{'?' + place if place else ''}")
        return self

    def node(self, place: str = "") -> Visit:
        """The node page, once it has drawn its strip and its flame graph."""
        self.go(f"page=node{'&' + place if place else ''}")
        return self.drawn()

    def drawn(self) -> Visit:
        expect(self.page.locator(".strip")).to_be_visible()
        expect(self.page.locator(".zs-bars-scroll, .zs-empty, .zs-sandwich, .who").first).to_be_visible()
        self.settled()
        return self

    def settled(self) -> None:
        """Until nothing that is shown is older than what was asked for."""
        expect(self.page.locator(".stale")).to_have_count(0)
        expect(self.page.locator(".spinner.on")).to_have_count(0)

    def still(self, place: Locator) -> dict[str, float]:
        """Where it is on the screen, once it has stood there for some frames: panes are measured and drawn again a few
        frames after what moved them, later on a busy machine."""
        box = place.evaluate(
            """(element, enough) => new Promise((done) => {
              let last = "", frames = 0;
              const look = () => {
                const { x, y, width, height } = element.getBoundingClientRect();
                const now = [x, y, width, height].join();
                frames = now === last ? frames + 1 : 0;
                last = now;
                if (frames >= enough) done({ x, y, width, height });
                else requestAnimationFrame(look);
              };
              look();
            })""",
            STILL_FRAMES,
        )
        return {name: float(value) for name, value in box.items()}

    def said(self, name: str) -> str | None:
        """A part of the address."""
        parts = urlsplit(self.page.url)
        found = parse_qs(parts.query or parts.fragment).get(name)
        return found[0] if found else None

    def wait_said(self, name: str, value: str | re.Pattern[str] | None) -> str:
        """Waits until the address says so; None: says nothing."""
        script = "([name]) => new URLSearchParams(location.search || location.hash.slice(1)).get(name)"
        wanted = value.pattern if isinstance(value, re.Pattern) else None
        self.page.wait_for_function(
            f"([name, value, pattern]) => {{ const said = ({script})([name]); "
            "return pattern ? said !== null && new RegExp(pattern).test(said) : said === value; }",
            arg=[name, None if wanted else value, wanted],
        )
        return self.said(name) or ""

    def span(self, name: str = "sel") -> tuple[float, float]:
        """A range in the address."""
        start, end = self.wait_said(name, re.compile(r"\.\.")).split("..")
        return float(start), float(end)

    def shown(self) -> tuple[float, float]:
        """What the time axis shows, as the address says it; only when it is not the whole recording."""
        return float(self.wait_said("from", re.compile("."))), float(self.wait_said("to", re.compile(".")))

    # --- the time axis ----------------------------------------------------------------------------------------------

    @property
    def axis(self) -> Locator:
        return self.page.locator(".surface")

    def x_of(self, at: float, extent: tuple[float, float]) -> float:
        """Pixels from the left of the window, of a moment on an axis that shows `extent`."""
        box = self.still(self.axis)
        return box["x"] + (at - extent[0]) / (extent[1] - extent[0]) * box["width"]

    def drag(self, start: float, end: float, extent: tuple[float, float], *, key: str | None = None) -> None:
        """Over the strip, from a moment to another one."""
        box = self.still(self.page.locator(".strip"))
        y = box["y"] + box["height"] / 2
        if key:
            self.page.keyboard.down(key)
        self.page.mouse.move(self.x_of(start, extent), y)
        self.page.mouse.down()
        self.page.mouse.move(self.x_of((start + end) / 2, extent), y + 2, steps=4)
        self.page.mouse.move(self.x_of(end, extent), y, steps=4)
        self.page.mouse.up()
        if key:
            self.page.keyboard.up(key)

    # --- the flame graph --------------------------------------------------------------------------------------------

    @property
    def flame(self) -> Locator:
        return self.page.locator(".zs-bars-scroll").first

    @property
    def search(self) -> Locator:
        return self.page.get_by_role("searchbox", name="Search functions by regular expression")

    @property
    def matched(self) -> Locator:
        return self.page.locator(".zs-matched")

    def find(self, text: str) -> None:
        self.search.fill(text)
        expect(self.matched).to_contain_text("matched")

    def frame(self, pattern: str) -> tuple[float, float]:
        """Where the widest frame whose name matches is on the screen: the search goes there, and is cleared again."""
        self.find(pattern)
        self.search.press("Enter")
        cursor = self.page.locator(".zs-bar-cursor").first
        expect(cursor).to_be_visible()
        self.search.press("Escape")
        expect(self.matched).to_have_count(0)
        cursor.scroll_into_view_if_needed()
        box = self.still(cursor)
        return box["x"] + min(box["width"] / 2, 40), box["y"] + box["height"] / 2

    def tab(self, name: str) -> Locator:
        return self.page.get_by_role("tab", name=name)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def with_heat_map(self) -> Visit:
        """In full: it is folded to a ribbon until the reader opens it. To be said before going anywhere."""
        self.context.add_init_script("localStorage.setItem('zombiescope.panes', '{\"axis\": null, \"heat\": 80}')")
        return self

    def menu(self, name: str) -> None:
        """Opens a menu: View, Graph, Compare, Share."""
        shut = self.page.locator("details:not([open]) > summary", has_text=name).first
        if shut.count():
            shut.click()

    def samples(self) -> int:
        """How many samples the flame graph is made of; none where it says that nothing is left."""
        left = self.page.locator(".zs-bars-scroll, .zs-empty").first
        if "zs-empty" in (left.get_attribute("class") or ""):
            return 0
        found = re.search(r"graph of ([\d,]+) sample", self.flame.get_attribute("aria-label") or "")
        assert found, self.flame.get_attribute("aria-label")
        return int(found[1].replace(",", ""))

    # --- what a person does not see ---------------------------------------------------------------------------------

    def forgive(self, pattern: str) -> None:
        """The console may say this: a test that kills the server hears that it is gone."""
        self._forgiven.append(pattern)

    def leave(self) -> None:
        self.context.close()
        wrong = [text for text in self._wrong if not any(re.search(each, text) for each in self._forgiven)]
        assert not wrong, "\n".join(wrong)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._wrong.append(f"console {message.type}: {message.text} ({message.location['url']})")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.origin + "/", "data:", "blob:", "about:")):
            self._wrong.append(f"asked a foreign host: {request.url}")
