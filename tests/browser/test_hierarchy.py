"""The most important thing is the most visible: on the node page, on Home and on Fleet; and nothing is shown as if it
were of another node. Many checks in few visits, because visits are expensive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import axe_playwright_python
import pytest
from benchmarks.fleets.nodes import Fleet, Plant, write
from playwright.sync_api import Browser, expect
from tests.browser.conftest import Visitor
from tests.helpers.made import BOOT, SECOND, START_US, Node, write_segment
from tests.helpers.recordings import write_recording
from tests.helpers.stage import Server
from tests.helpers.visit import Visit

pytestmark = pytest.mark.browser

CORES, LASTS = 96, 60
MOST_STOPS = 30
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
AXE_RULES = ("wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice")
MAIN, OTHER, WITHOUT_GPU = 1859, 1959, 3000


def training(directory: Path, boot: str = BOOT) -> None:
    """Two ranks of one program on GPUs, each with six feeder threads, another program without a GPU, and 96 cores."""
    node = Node()
    start, run = (node.frame(name, "user", "python3.11") for name in ("_start", "_PyEval_EvalFrameDefault"))
    native = node.stack([start, run, node.frame("PjitFunction", "user", "jaxlib.so")])
    module, step, boots, feed = (
        node.frame(name, "python", file)
        for name, file in (("<module>", "/job/jx.py"), ("train_step", "/job/jx.py"),
                           ("_bootstrap", "/usr/lib/python3.11/threading.py"), ("feed", "/job/jx.py"))
    )  # fmt: skip
    tasks = {pid: node.task(pid, "python3", cmdline=f"/usr/bin/python3 /job/jx.py --rank {rank}", unit="train.service")
             for rank, pid in enumerate((MAIN, OTHER))}  # fmt: skip
    tasks[WITHOUT_GPU] = node.task(WITHOUT_GPU, "python3", cmdline="python3 /job/hf.py")
    for second in range(LASTS):
        at_us = START_US + second * SECOND
        for cpu in range(CORES):
            node.core(at_us + SECOND, cpu, user=400)
        node.census(at_us + SECOND, 60, 13)
        for gpu, pid in enumerate((MAIN, OTHER)):
            node.gpu_second(at_us + SECOND, gpu, 90, power_w=600)
            for tenth in range(10):
                look_us = at_us + tenth * SECOND // 10
                if second < LASTS // 2:
                    node.python(look_us, pid=pid, task_tid=pid, frames=[module, step], lines=[20, 40], comm="python3")
                node.sample(look_us, gpu, tasks[pid], native)
            for feeder in range(6):
                for half in (0, SECOND // 2):
                    node.python(at_us + half, pid=pid, task_tid=pid + 18 + feeder, frames=[boots, feed], lines=[1, 77],
                                comm="feeder")  # fmt: skip
        node.python(at_us, task_tid=WITHOUT_GPU, frames=[module], lines=[3], comm="python3")
        for part in range(15):
            node.sample(at_us + part * SECOND // 15, 5, tasks[WITHOUT_GPU], native)
    for gpu, pid in enumerate((MAIN, OTHER)):
        node.gpu(START_US + 1, gpu)
        node.gpu_process(START_US + 1, gpu, pid, "python3")
    write_segment(directory, node.tables, node="vm", boot=boot)


@pytest.fixture(scope="module")
def recorded_training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("training") / "rec"
    training(place)
    return place


@pytest.fixture(scope="module")
def trained(recorded_training: Path, browser: Browser) -> Iterator[Server]:
    made = Server(recorded_training)
    yield made
    made.kill()


def in_view(visit: Visit, selector: str) -> int:
    """How many rows are wholly inside of the scrolled lanes."""
    found = visit.page.evaluate(
        """selector => {
          const room = document.querySelector(".timeline-scroll").getBoundingClientRect();
          return [...document.querySelectorAll(selector)]
            .map(row => row.getBoundingClientRect())
            .filter(box => box.height && box.top >= room.top - 1 && box.bottom <= room.bottom + 1).length;
        }""",
        selector,
    )
    return int(found)


def stops(visit: Visit) -> int:
    """Presses of Tab from the top of the page until the focus is back there."""
    visit.page.evaluate("document.activeElement.blur(); document.querySelector('.skip').focus()")
    count = 1
    while count < 3 * MOST_STOPS:
        visit.page.keyboard.press("Tab")
        if visit.page.evaluate("document.activeElement === document.body || document.activeElement.matches('.skip')"):
            break
        count += 1
    return count


def test_a_laptop_shows_cores_gpus_and_python_and_the_reader_arranges_the_rest(
    trained: Server, visitor: Visitor
) -> None:
    visit = visitor(trained.origin)
    visit.node()
    # GIVEN 1280 x 800 THEN 96 cores have room, and GPUs and Python threads are in view without scrolling
    assert visit.still(visit.page.locator(".strip"))["height"] >= 140
    assert in_view(visit, ".lane-gpu") == 1
    assert in_view(visit, ".python-row:not(.more)") == 4
    # AND the first rows are main threads of processes on GPUs, by program and rank
    names = visit.page.locator(".python-row:not(.more) .track-label").all_inner_texts()
    assert names[:3] == [f"jx.py rank 0 {MAIN}", f"jx.py rank 1 {OTHER}", f"hf.py main {WITHOUT_GPU}"]
    expect(visit.page.locator(".python-row.more")).to_contain_text("+ 11 more")
    # AND 13 harmless zombies take a line, not a chart
    assert visit.still(visit.page.locator(".lane-zombies"))["height"] <= 14
    # the wheel scrolls the lanes; with Ctrl it zooms
    box = visit.still(visit.axis)
    visit.page.mouse.move(box["x"] + 300, box["y"] + 100)
    visit.page.mouse.wheel(0, 200)
    visit.page.wait_for_function("() => document.querySelector('.timeline-scroll').scrollTop > 0")
    assert visit.said("from") is None
    visit.page.keyboard.down("Control")
    visit.page.mouse.wheel(0, -300)
    visit.page.keyboard.up("Control")
    visit.wait_said("from", re.compile("."))
    visit.page.keyboard.press("0")
    # few stops of Tab, and the arrows go along the tabs
    assert stops(visit) < MOST_STOPS
    visit.tab("Flame graph").focus()
    visit.page.keyboard.press("ArrowRight")
    visit.wait_said("view", "chart")
    visit.page.keyboard.press("1")
    # a lane is hidden, another moved; both are remembered
    visit.menu("View")
    visit.page.get_by_role("checkbox", name="Pressure").uncheck()
    visit.page.get_by_role("button", name="Move Zombies up").click()
    visit.page.get_by_role("button", name="Move Zombies up").click()
    expect(visit.page.locator(".lane-pressure")).to_have_count(0)
    visit.page.reload()
    visit.drawn()
    expect(visit.page.locator(".lane-zombies")).to_have_count(1)
    expect(visit.page.locator(".lane-pressure")).to_have_count(0)
    order = visit.page.evaluate("[...document.querySelectorAll('.lane-zombies, .event-row')].map(row => row.className)")
    assert "lane-zombies" in order[0]


def test_a_thread_is_found_by_its_number_and_has_one_row_one_root_and_its_lines(
    trained: Server, visitor: Visitor
) -> None:
    visit = visitor(trained.origin, viewport={"width": 1024, "height": 768})
    visit.node()
    # no control is cut off
    cut = visit.page.evaluate(
        """[...document.querySelectorAll(".header *, .node-bar *, .selection-bar *, .zs-panel > .zs-bar *")]
          .filter(one => one.matches("button, summary, select, .chip") && one.offsetWidth)
          .filter(one => { const box = one.getBoundingClientRect();
            return box.right > innerWidth + 1 || (!one.matches("select") && one.scrollWidth > one.clientWidth + 1); })
          .map(one => one.textContent)"""
    )
    assert cut == []
    # WHEN the number of the thread is typed into the palette
    visit.page.keyboard.press("Control+k")
    visit.page.keyboard.type(str(MAIN))
    options = visit.page.locator("#palette-list [role=option]")
    expect(options.filter(has_text="Only thread")).to_have_count(1)
    options.filter(has_text="Only thread").click()
    visit.wait_said("tid", str(MAIN))
    visit.settled()
    # THEN the lanes have one row of Python, and the thread has one root with and without looks
    expect(visit.page.locator(".python-row")).to_have_count(1)
    expect(visit.page.locator(".python-row .track-label")).to_have_text(f"jx.py rank 0 {MAIN}")
    x, y = visit.frame("^_start$")
    visit.page.mouse.move(x, y)
    expect(visit.page.locator(".zs-tip")).to_contain_text(re.compile(r"(9[5-9]|100)(\.\d)?% of all"))
    # AND its lines of Python, one row
    visit.tab("Python").click()
    visit.wait_said("view", "python")
    rows = visit.page.locator(".who tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("train_step jx.py:40")


def test_a_comparison_of_a_steady_load_finds_no_change_whatever_the_lengths(trained: Server, visitor: Visitor) -> None:
    visit = visitor(trained.origin)
    start = START_US / 1e6
    visit.node(f"sel={start + 2}..{start + 24}&cmp={start + 30}..{start + 47}")
    words = visit.page.locator(".zs-difference")
    expect(words).to_contain_text("No function differs by 2% or more")
    visit.tab("Who ran").click()
    expect(visit.page.get_by_role("columnheader", name="Cores, B")).to_be_visible()
    visit.tab("Functions").click()
    change = visit.page.get_by_role("columnheader", name="Change")
    expect(change).to_have_attribute("aria-sort", "descending")
    visit.page.get_by_role("button", name="End comparison").click()
    visit.wait_said("cmp", None)
    visit.menu("Compare")
    visit.page.get_by_role("button", name="The same length after").click()
    assert visit.span("cmp") == pytest.approx((start + 24, start + 46), abs=0.01)


def test_a_link_of_another_machine_of_the_same_name_is_not_served_here(
    trained: Server, tmp_path: Path, visitor: Visitor
) -> None:
    visit = visitor(trained.origin)
    visit.node()
    visit.menu("Share")
    visit.page.get_by_role("button", name="Copy link").click()
    expect(visit.page.get_by_text("Link copied")).to_be_visible()
    place = str(visit.page.evaluate("navigator.clipboard.readText()")).partition("?")[2]
    assert "rec=here" in place
    training(tmp_path / "other", boot="00000000-7d0c-4c7a-9d35-0d8a4e1f2b60")
    other = Server(tmp_path / "other")
    try:
        there = visitor(other.origin)
        there.go(place)
        expect(there.page.locator("main")).to_contain_text(
            "This link is of another boot of vm, which is not served here"
        )
        expect(there.page.locator(".strip")).to_have_count(0)
    finally:
        other.kill()


def test_home_leads_with_the_worst_incident_and_a_healthy_one_with_nothing_red(
    trained: Server, tmp_path: Path, visitor: Visitor, browser: Browser
) -> None:
    visit = visitor(trained.origin)
    visit.go("page=home&rec=founding-case")
    hero = visit.page.locator(".pg-hero")
    expect(hero.locator("h2")).to_contain_text("ecs.service")
    expect(hero).to_contain_text(re.compile(r"core 39 for \d"))
    # one click to the clipboard
    hero.get_by_role("button", name=re.compile("^Copy ")).click()
    visit.page.wait_for_function("async () => (await navigator.clipboard.readText()).startsWith('systemctl ')")
    hero.get_by_role("link", name="Open the incident").click()
    visit.wait_said("page", "incident")
    # GIVEN a healthy recording THEN the first card says so, in no red; its GPUs are on the page
    visit.go("page=home")
    expect(visit.page.locator(".pg-calm")).to_contain_text("No incidents in what was recorded")
    expect(visit.page.locator(".pg-gpus tr")).to_have_count(2)
    expect(visit.page.locator(".pg-loading")).to_have_count(0)
    red = visit.page.evaluate(
        """() => {
          const probe = document.createElement("i"); probe.style.color = "var(--bad)"; document.body.append(probe);
          const bad = getComputedStyle(probe).color;
          probe.style.color = "var(--mode-system)"; const held = getComputedStyle(probe).color; probe.remove();
          return [...document.querySelectorAll("main *")].filter(one => { const style = getComputedStyle(one);
            return one.offsetParent && ([bad, held].includes(style.backgroundColor)
              || (style.color === bad && one.childNodes.length && one.textContent.trim())); })
            .map(one => one.className + ": " + one.textContent.slice(0, 60));
        }"""
    )
    assert red == []


def test_a_fleet_opens_on_its_finding_and_is_filtered_sorted_and_walked_through(
    tmp_path: Path, visitor: Visitor, browser: Browser
) -> None:
    write(Fleet(nodes=40, hours=1, seed=4, plant=Plant((("image", "v14"),), rate=1.0)), tmp_path / "fleet")
    server = Server(None, options=("--fleet", str(tmp_path / "fleet")))
    try:
        visit = visitor(server.origin)
        visit.forgive("ERR_CONNECTION_RE|ERR_EMPTY_RESPONSE")
        visit.go()
        visit.wait_said("page", "fleet")
        expect(visit.page.locator(".pg-hero h2")).to_contain_text("v14", timeout=60_000)
        rows = visit.page.locator("#nodes tbody tr")
        everything = rows.count()
        # a label filters the table, also in the address
        visit.page.get_by_role("button", name="image=v14").first.click()
        visit.wait_said("q", "image=v14")
        expect(rows.filter(has_not_text="v14")).to_have_count(0)
        chosen = rows.count()
        assert 0 < chosen < everything
        visit.page.get_by_role("button", name="Show all").click()
        # a column sorts
        visit.page.get_by_role("button", name="Dying", exact=False).first.click()
        head = visit.page.get_by_role("columnheader", name="Dying")
        expect(head).to_have_attribute("aria-sort", "descending")
        dying = [
            int(text.replace(",", "")) for text in rows.locator("td:nth-child(8)").all_inner_texts() if text != "?"
        ]
        assert dying == sorted(dying, reverse=True)
        # a sick node opens its worst incident, and the picker names it
        sick = rows.filter(has_text="sick").first
        name = sick.get_by_role("link").inner_text()
        sick.get_by_role("link").click()
        visit.wait_said("rec", f"fleet:{name}")
        expect(visit.page.locator("main h1")).to_be_visible(timeout=60_000)
        expect(visit.page.get_by_label("Recording").locator("option:checked")).to_have_text(name)
    finally:
        server.kill()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier_on_any_page(trained: Server, visitor: Visitor, scheme: str) -> None:
    visit = visitor(trained.origin, color_scheme=scheme, bypass_csp=True)
    found: list[str] = []
    for place in ("home&rec=founding-case", "node", "node&view=who", "node&view=python", "incidents&rec=founding-case",
                  "cgroups&rec=founding-case", "home"):  # fmt: skip
        visit.go(f"page={place}")
        expect(visit.page.locator("main h1")).to_have_count(1)
        expect(visit.page.locator(".pg-loading, .state.loading")).to_have_count(0)
        visit.page.evaluate(AXE.read_text())
        said = visit.page.evaluate(f"() => axe.run(document, {{ runOnly: {list(AXE_RULES)} }})")
        found += [f"{place}: {each['id']}: {each['nodes'][0]['html'][:160]}" for each in said["violations"]]
    assert found == []


def test_the_picker_says_the_same_as_the_heading(tmp_path: Path, visitor: Visitor, browser: Browser) -> None:
    server = Server(write_recording(tmp_path / "one", seconds=20, node="gpu-17").dir)
    try:
        visit = visitor(server.origin)
        visit.forgive("ERR_CONNECTION_RE|ERR_EMPTY_RESPONSE")
        visit.go("page=home")
        expect(visit.page.locator("main h1")).to_have_text("gpu-17")
        expect(visit.page.get_by_label("Recording").locator("option:checked")).to_contain_text("gpu-17")
    finally:
        server.kill()
