"""The one HTML file, opened in a real browser without a network: select on the heat map, the flame graph follows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from datetime import UTC
from html import unescape
from pathlib import Path

import pytest
from benchmarks import generate
from tests.conftest import Needs
from tests.recordings import SECOND, START_US, Written, write_recording

from zombiescope.profile import heatmap, html
from zombiescope.profile.selection import Selection
from zombiescope.recording.reader import open_recording

Browser = Callable[..., dict[str, str]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_recording(tmp_path_factory.mktemp("rec"), cpus=4, seconds=20)


def page(written: Written, heading: str = "lab <node>", **options: object) -> str:
    with open_recording(written.dir) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1)
        return html.page(selection, heading, UTC, **options)  # type: ignore[arg-type]  # passed on as they are


@pytest.fixture
def browser(tmp_path: Path, needs: Needs) -> Browser:
    """Opens a page, lets `script` act on it, and answers the texts of its elements by id."""
    chromium = needs.binary("chromium", "chromium")

    def opened(text: str, hash_: str = "", script: str = "") -> dict[str, str]:
        wait = "const wait = setInterval(() => { if (!document.body.dataset.ready) return; clearInterval(wait);"
        acting = f"<script>{wait} {script} }}, 5);</script>"
        file = tmp_path / "page.html"
        file.write_text(text.replace("</body>", f"{acting}</body>"))
        done = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1200,900", "--virtual-time-budget=4000",
             "--dump-dom", f"file://{file}#{hash_}"],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        assert 'data-ready="yes"' in done.stdout, done.stdout[-600:]
        found = re.findall(r'<(\w+)[^>]* id="(\w+)"[^>]*>([^<]*)</\1>', done.stdout)
        return {name: unescape(text) for _, name, text in found if name != "data"}

    return opened


def mouse(canvas: str, *moves: tuple[str, str, str]) -> str:
    """Real mouse events at places of a canvas, each written as (event, x, y) in JavaScript."""
    return "\n".join(
        f"{{ const canvas = document.getElementById('{canvas}'), box = canvas.getBoundingClientRect();"
        f"canvas.dispatchEvent(new MouseEvent('{event}', "
        f"{{bubbles: true, clientX: box.left + {x}, clientY: box.top + {y}}})); }}"
        for event, x, y in moves
    )


def column(second: int) -> str:
    return f"LEFT + heat.w * {second + 0.5}"


def samples_in(written: Written, start_us: int, end_us: int, cpu: int | None = None) -> int:
    with open_recording(written.dir) as recording:
        batches = list(Selection(recording, start_us, end_us).batches())
        return sum(int((rows.cpu == cpu).sum()) if cpu is not None else len(rows) for rows in batches)


def test_the_file_asks_nobody_for_anything(written: Written) -> None:
    text = page(written)
    assert "default-src 'none'" in text
    assert not re.search(r"https?:|//[a-z]+\.|@import|fetch\(|XMLHttpRequest|import\(", text)
    assert "lab &lt;node&gt;" in text
    assert "{{data}}" in page(written, heading="{{data}}"), "a heading is text, and no mark to fill in"


def test_it_opens_with_everything(written: Written, browser: Browser) -> None:
    assert browser(page(written))["says"] == f"{written.samples:,} of {written.samples:,} samples"


def test_a_click_selects_that_second(written: Written, browser: Browser) -> None:
    at = (column(10), "20")
    shown = browser(page(written), script=mouse("heat", ("mousedown", *at), ("mouseup", *at)))
    count = samples_in(written, START_US + 10 * SECOND, START_US + 11 * SECOND)
    assert shown["says"] == f"{count:,} of {written.samples:,} samples"
    assert shown["selected"] == "08:53:30.00 – 08:53:31.00"


def test_a_drag_selects_from_cell_to_cell(written: Written, browser: Browser) -> None:
    bottom, middle = "heat.h * heat.rows - 1", "heat.h * (heat.rows / 2) + 1"
    drag = mouse(
        "heat", ("mousedown", column(10), bottom), ("mousemove", column(11), middle), ("mouseup", column(12), middle)
    )
    shown = browser(page(written), script=drag)
    count = samples_in(written, START_US + 10 * SECOND, START_US + 12 * SECOND + 500_000)
    assert shown["says"] == f"{count:,} of {written.samples:,} samples"


def test_a_click_on_the_core_map_selects_that_core(written: Written, browser: Browser) -> None:
    at = (column(10), "heat.h * 3.5")
    click = mouse("heat", ("mousedown", *at), ("mouseup", *at))
    shown = browser(page(written, by="core"), hash_="search=^mem_cgroup_nr", script=click)
    assert shown["says"] == f"99 of {written.samples:,} samples"
    assert shown["selected"].endswith(", core 3")
    assert shown["matched"] == "100.0 % matched"


def test_a_click_on_a_frame_zooms_and_reset_comes_back(written: Written, browser: Browser) -> None:
    click = mouse("flame", ("click", "5", "FRAME * 1.5"))
    zoomed = browser(page(written), script=click)["zoomed"]
    assert re.fullmatch(r"asm_common_interrupt: \d+\.\d+ % of the selection", zoomed)
    back = browser(page(written), script=click + "document.getElementById('reset').click();")
    assert back["zoomed"] == ""


def test_the_tooltip_names_the_frame(written: Written, browser: Browser) -> None:
    tip = browser(page(written), script=mouse("flame", ("mousemove", "5", "FRAME * 1.5")))["tip"]
    assert tip.startswith("asm_common_interrupt\n[kernel], kernel\n")


def test_two_selections_are_compared_inside_the_page(written: Written, browser: Browser) -> None:
    first, second = (column(2), "20"), (column(10), "20")
    script = mouse("heat", ("mousedown", *first), ("mouseup", *first))
    script += "document.getElementById('compare').click();"
    script += mouse("heat", ("mousedown", *second), ("mouseup", *second))
    shown = browser(page(written), script=script)
    assert "Red grew, blue shrank or vanished" in shown["notes"]
    assert shown["compare"] == "stop comparing"


def test_a_window_to_compare_with_comes_with_the_file(written: Written, browser: Browser) -> None:
    with open_recording(written.dir) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1)
        base = Selection(recording, START_US, START_US + 5 * SECOND, known=selection.stacks).counts()
        text = html.page(selection, "lab", UTC, base=base, invert=True)
    assert "Red grew" in browser(text)["notes"]


def test_a_wrong_expression_is_no_error(written: Written, browser: Browser) -> None:
    assert browser(page(written), hash_="search=(")["matched"] == ""


def test_more_samples_than_fit_are_thinned_and_said(
    written: Written, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "MAX_SAMPLES", written.samples // 3)
    monkeypatch.setattr(html, "THINNED_SAMPLES", written.samples)
    assert browser(page(written))["says"].endswith("; the file holds one of every 4 that were recorded")


def test_no_sample_at_all_is_a_page_that_says_so(tmp_path: Path, browser: Browser) -> None:
    written = write_recording(tmp_path / "idle", seconds=3, busy=0.0, incident=False)
    assert "No sample" in browser(page(written))["notes"]


# --- more than fits ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six minutes of 96 cores, a third busy: a million samples, and one core that hangs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return generate.cached(PLAN)


PLAN = generate.Plan(hours=0.1)


@pytest.fixture(scope="module")
def large_page(large: Path) -> tuple[str, int]:
    with open_recording(large) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1)
        return html.page(selection, "large", UTC), int(selection.counts().sum())


def test_a_file_of_a_million_samples_is_below_one_megabyte(large_page: tuple[str, int]) -> None:
    text, total = large_page
    assert total > 900_000
    assert 400_000 < len(text.encode()) < 1_000_000


def test_it_says_what_it_holds_and_what_was_left_out(large_page: tuple[str, int], browser: Browser) -> None:
    text, total = large_page
    shown = browser(text)
    said = re.fullmatch(rf"{total:,} of {total:,} samples; the file holds one of every (\d+) .*", shown["says"])
    assert said is not None
    assert int(said[1]) > 1
    assert re.search(
        r"[\d,]+ branches below [\d.e-]+ % of the window are not in the file; \d+\.\d+ % of", shown["notes"]
    )


def test_heat_maps_of_a_thinned_file_are_exact(large: Path, large_page: tuple[str, int], browser: Browser) -> None:
    text, total = large_page
    with open_recording(large) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1)
        most = heatmap.by_core(selection).max
    tell = "document.getElementById('hint').textContent = heat.values.reduce((a, b) => a + b, 0) + ' ' + heat.most;"
    assert browser(text, hash_="by=core", script=tell)["hint"] == f"{total} {most}"
    assert browser(text, script=tell)["hint"].split()[0] == str(total)


def test_a_selection_in_a_thinned_file_finds_the_core_that_hangs(
    large: Path, large_page: tuple[str, int], browser: Browser
) -> None:
    second = (PLAN.stuck_us - generate.START_US) // SECOND + 1
    hash_ = f"by=core&core={PLAN.stuck_cpu}&from={second}&to={second + 7}&search=."
    shown = browser(large_page[0], hash_=hash_)
    about = re.match(r"about ([\d,]+) of ", shown["says"])
    assert about is not None
    assert int(about[1].replace(",", "")) == pytest.approx(7 * generate.HZ, rel=0.5)
    assert shown["selected"].endswith(f", core {PLAN.stuck_cpu}")
