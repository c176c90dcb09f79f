"""The web page in a real browser: first picture, selection to flame graph, weight, and frames while a hand moves.

Everything is measured inside the page, by its own clock, in the Chromium of the distribution without a GPU: what a
laptop draws is faster. Time counts from the navigation, or from the release of the mouse, to the frame in which the
picture stands. The large recording is that of `views`; before a first picture the server is started anew and its files
are dropped from the page cache.
"""

from __future__ import annotations

import gzip
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import generate
from benchmarks.table import Row

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROUNDS = 5
SELECTIONS = 12
VIEW_S, SELECTED_S = 60, 5
BUILT = Path(__file__).parents[1] / "src/zombiescope/web/page"

# When each picture stood, and when a released mouse led to the next flame graph; told by the page itself.
_WATCH = """
window.stood = {}; window.released = 0; window.redrawn = 0;
const seen = (name, found) => {
  if (found && !(name in stood)) requestAnimationFrame(() => stood[name] = performance.now());
};
const look = () => {
  seen('strip', document.querySelector('#chosen-in-words strong'));
  seen('heat', document.querySelector('.zs-heat-box canvas[data-ms]'));
  seen('flame', document.querySelector('.zs-bars-room canvas[data-ms]'));
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
addEventListener('pointerup', () => { released = performance.now(); redrawn = 0; }, true);
window.follow = () => new MutationObserver(() => {
  if (released && !redrawn) requestAnimationFrame(() => redrawn = performance.now());
}).observe(document.querySelector('.zs-bars-scroll'), {attributes: true, attributeFilter: ['aria-label']});
window.deltas = []; window.counting = false;
window.count = () => { window.deltas = []; counting = true; let last = performance.now();
  const step = now => { deltas.push(now - last); last = now; if (counting) requestAnimationFrame(step); };
  requestAnimationFrame(step); };
"""


def measure(seconds: float) -> list[Row]:
    from playwright.sync_api import sync_playwright

    place = generate.cached(generate.Plan(hours=seconds / 3600))
    wide = generate.cached(generate.Plan(hours=0.25, cpus=192))
    busy = [os.getloadavg()[0]]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        rows = [*_weight(), *_first_picture(browser, place)]
        with _served(place) as origin:
            rows += _selection(browser, origin, seconds)
            rows += _large_graph(browser, origin)
        busy.append(os.getloadavg()[0])
        with _served(wide) as origin:
            rows += _dragging(browser, origin)
        browser.close()
    busy.append(os.getloadavg()[0])
    load = f"{min(busy):.1f} to {max(busy):.1f} on {os.cpu_count()} CPUs"
    return [*rows, Row("load average meanwhile", load, "browser, server and all else share them")]


# --- what is measured ------------------------------------------------------------------------------------------------


def _weight() -> list[Row]:
    files = [path for path in BUILT.rglob("*") if path.is_file()]
    sent = sum(len(gzip.compress(path.read_bytes(), 6)) for path in files)
    whole = sum(path.stat().st_size for path in files)
    return [Row("page, gzipped", f"{sent / 1e3:.0f} kB", f"goal: below 300 kB; {whole / 1e3:.0f} kB unpacked")]


def _first_picture(browser: Browser, place: Path) -> list[Row]:
    runs: dict[str, list[dict[str, float]]] = {"cold": [], "warm": []}
    for _ in range(ROUNDS):
        _forget(place)
        with _served(place) as origin:
            for kind in runs:
                page = _page(browser)
                page.goto(f"{origin}/?page=node")
                page.wait_for_function("() => 'heat' in stood && 'strip' in stood", timeout=120_000)
                runs[kind].append(page.evaluate("stood"))
                page.context.close()
    rows = []
    for kind, said in (("cold", "server just started, files not in memory"), ("warm", "the next visitor")):
        each = {name: _spread([run[name] / 1e3 for run in runs[kind]], "s") for name in ("strip", "heat")}
        goal = "goal: 1 s; " if kind == "cold" else ""
        rows.append(Row(f"first picture of all of it: cores, {kind}", each["strip"], goal + said))
        rows.append(Row(f"heat map of all of it below, {kind}", each["heat"]))
    return rows


def _selection(browser: Browser, origin: str, seconds: float) -> list[Row]:
    """Five seconds dragged on the strip, each time elsewhere in the recording."""
    chance, start = random.Random(3), generate.START_US / 1e6
    page, took = _page(browser), []
    for _ in range(SELECTIONS):
        at = start + chance.uniform(60, seconds - 120)
        page.goto(f"{origin}/?page=node&from={at:.3f}&to={at + VIEW_S:.3f}")
        page.wait_for_function("() => 'flame' in stood && 'strip' in stood", timeout=120_000)
        page.evaluate("follow()")
        _drag(page, 0.3, 0.3 + SELECTED_S / VIEW_S)
        page.wait_for_function("() => redrawn > 0", timeout=60_000)
        took.append(page.evaluate("redrawn - released"))
    page.context.close()
    took.sort()
    return [
        Row(
            "selection of 5 s to its flame graph",
            f"{statistics.median(took):.0f} ms",
            f"goal: 300 ms; {SELECTIONS} places, {took[0]:.0f} to {took[-1]:.0f} ms; of 96 cores",
        )
    ]


def _large_graph(browser: Browser, origin: str) -> list[Row]:
    page = _page(browser)
    page.goto(f"{origin}/?page=node")
    page.get_by_role("button", name="Fold all of it").click(timeout=120_000)
    page.wait_for_function("() => 'flame' in stood", timeout=120_000)
    graph = page.locator(".zs-bars-scroll").first
    found = re.search(r"([\d,]+) frames", graph.get_attribute("aria-label") or "")
    nodes = found[1] if found else "?"
    graph.focus()
    drawn = []
    page.evaluate("count()")
    for key in "wwwwwwdddddaaaaassssss" * 3:
        page.keyboard.press(key)
        page.evaluate("new Promise(requestAnimationFrame)")
        drawn.append(float(page.locator(".zs-bars-room canvas").first.get_attribute("data-ms") or "nan"))
    started = time.perf_counter()
    page.get_by_role("searchbox", name="Search functions").fill("alloc|lock")
    page.locator(".zs-matched").wait_for()
    searched = time.perf_counter() - started
    page.context.close()
    drawn.sort()
    return [
        Row(
            f"flame graph of {nodes} frames: one redraw",
            f"{statistics.median(drawn):.1f} ms",
            f"goal: 16.7 ms; worst of {len(drawn)}: {drawn[-1]:.1f} ms",
        ),
        Row(
            "search in it, from the last letter to its share",
            f"{searched * 1e3:.0f} ms",
            "120 ms of it wait for more letters",
        ),
    ]


def _dragging(browser: Browser, origin: str) -> list[Row]:
    page = _page(browser)
    page.goto(f"{origin}/?page=node")
    page.wait_for_function("() => 'strip' in stood && 'heat' in stood", timeout=120_000)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1000)
    rows = [_frames(page, "a hand does nothing", lambda _: None)]
    box = page.locator(".strip").bounding_box()
    assert box is not None
    x, y, width = box["x"], box["y"] + box["height"] / 2, box["width"]
    page.mouse.move(x + 20, y)
    page.mouse.down()
    rows.append(
        _frames(
            page, "dragging a selection over 192 cores", lambda step: page.mouse.move(x + 20 + (width - 40) * step, y)
        )
    )
    page.mouse.up()
    page.mouse.move(x + width / 2, y)
    rows.append(
        _frames(page, "zooming 192 cores with the wheel", lambda step: page.mouse.wheel(0, -30 if step < 0.5 else 30))
    )
    page.context.close()
    return rows


def _frames(page: Page, what: str, act: Callable[[float], object]) -> Row:
    """Frames a second for four seconds in which `act` moves the hand as fast as events can be sent."""
    page.evaluate("count()")
    end, begun = time.perf_counter() + 4, time.perf_counter()
    while (now := time.perf_counter()) < end:
        act((now - begun) / 4)
        page.wait_for_timeout(8)
    deltas: list[float] = page.evaluate("(counting = false, deltas.slice(1))")
    rate = 1000 * len(deltas) / sum(deltas)
    late = sum(delta > 25 for delta in deltas)
    goal = "goal: 60; " if "drag" in what else ""
    return Row(
        f"frames a second, {what}", f"{rate:.0f}",
        f"{goal}{late} of {len(deltas)} frames late; the longest {max(deltas):.0f} ms",
    )  # fmt: skip


# --- how -------------------------------------------------------------------------------------------------------------


@contextmanager
def _served(place: Path) -> Iterator[str]:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port = made.getsockname()[1]
    root = Path(__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "zombiescope.cli.main", "serve", str(place), "--no-token", "--listen",
         f"127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(root / "src")},
    )  # fmt: skip
    try:
        origin = f"http://127.0.0.1:{port}"
        while True:  # until it answers with the page, which says nothing about the recording yet
            try:
                urllib.request.urlopen(origin, timeout=60).close()
                break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError("the server ended") from None
                time.sleep(0.05)
        yield origin
    finally:
        process.terminate()
        process.wait()


def _forget(place: Path) -> None:
    for path in place.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _page(browser: Browser) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.add_init_script(_WATCH)
    return page


def _drag(page: Page, start: float, end: float) -> None:
    box = page.locator(".strip").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * start, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end, y, steps=5)
    page.mouse.up()


def _spread(values: list[float], unit: str) -> str:
    return f"{statistics.median(values):.2f} {unit} ({min(values):.2f} to {max(values):.2f})"


def _chromium() -> str:
    found = shutil.which("chromium")
    if found is None:
        raise RuntimeError("needs chromium (scripts/need-tests installs it)")
    return found
