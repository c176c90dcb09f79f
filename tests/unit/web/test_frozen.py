"""The page as one file, opened in a real browser from the disk and without a network: it answers by itself."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from html import unescape
from pathlib import Path

import pytest
from benchmarks import generate
from tests.conftest import Needs
from tests.helpers.recordings import SECOND, START_US, Written, write_recording

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.documents.flamegraph import Reference
from zombiescope.query import sample_table
from zombiescope.query.selection import Filters, Selection
from zombiescope.questions.window import Window
from zombiescope.store.reader import open_recording
from zombiescope.web import report
from zombiescope.web.frozen import Built, EmbeddedDocuments, NotBuiltError, assembled

Browser = Callable[..., list["Shown"]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_recording(tmp_path_factory.mktemp("rec"), cpus=4, seconds=20)


def page(written: Written, heading: str = "lab <node>", **options: object) -> str:
    with open_recording(written.dir) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1)
        window = Window(selection.start_us, selection.end_us, UTC)
        return report.of_selection(selection, heading, window, {}, **options)  # type: ignore[arg-type]  # passed on


def told(written: Written) -> str:
    with open_recording(written.dir) as recording:
        window = Window(recording.start_us, recording.end_us + 1, UTC)
        found = diagnose(recording, window.start_us, window.end_us)
        return report.of_diagnosis(recording, found, "lab", window)


_VISIT = """<script>(async () => {
  const rest = () => new Promise((done) => setTimeout(done, 900));
  const seen = [];
  for (const place of PLACES) {
    if (place) location.hash = place;
    await rest();
    const shown = document.getElementById("app");
    seen.push([shown.innerText, [...shown.querySelectorAll("a")].map((link) => link.getAttribute("href"))]);
  }
  const told = document.createElement("pre");
  told.id = "seen";
  told.textContent = JSON.stringify(seen);
  document.body.append(told);
})()</script>"""
"""Goes from place to place as somebody would who edits the address, and writes down what is there to read."""


@dataclass(frozen=True, slots=True)
class Shown:
    text: str
    links: list[str]


@pytest.fixture
def browser(tmp_path: Path, needs: Needs) -> Browser:
    """What a page shows at each of some places, one after the other; "" is where it opens."""
    chromium = needs.binary("chromium", "chromium")

    def opened(text: str, *places: str) -> list[Shown]:
        file = tmp_path / "page.html"
        visit = _VISIT.replace("PLACES", json.dumps(places))
        digest = hashlib.sha256(visit.removeprefix("<script>").removesuffix("</script>").encode()).digest()
        allowed = f"script-src 'sha256-{base64.b64encode(digest).decode()}' "  # else the page's own policy stops it
        file.write_text(text.replace("script-src ", allowed, 1).replace("</body>", f"{visit}</body>"))
        done = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1280,1000",
             f"--virtual-time-budget={2000 + 1000 * len(places)}", "--dump-dom", f"file://{file}"],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
        assert found is not None, done.stdout[-600:]
        return [Shown(re.sub(r"\s+", " ", text), links) for text, links in json.loads(unescape(found[1]))]

    return opened


def samples_in(written: Written, start_us: int, end_us: int, cpu: int | None = None, comm: str | None = None) -> int:
    filters = Filters(frozenset() if cpu is None else frozenset({cpu}), comms=() if comm is None else (comm,))
    with open_recording(written.dir) as recording:
        return sum(len(rows) for rows in Selection(recording, start_us, end_us, filters).batches())


def span(start: int, end: int) -> str:
    return f"{START_US / 1e6 + start:.3f}..{START_US / 1e6 + end:.3f}"


# --- the file ------------------------------------------------------------------------------------------------------


def test_the_file_asks_nobody_for_anything(written: Written) -> None:
    text = page(written)
    assert "default-src 'none'" in text
    outside = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!data:,)', outside)
    assert "<title>lab &lt;node&gt;</title>" in text


def test_no_name_ends_a_script_of_it(written: Written) -> None:
    hostile = "</script><script>document.title = 'x'</script><!--"
    built = Built.found()
    answers = EmbeddedDocuments()
    answers.put("info", {"node": hostile})
    text = assembled(built, hostile, hostile, answers, None, hostile)
    assert text.count("</script") == assembled(built, "a", "b", answers, None, "c").count("</script") == 4
    assert "<!--" not in text
    assert len(re.findall("<script", text)) == len(re.findall("<script", page(written)))


def test_a_tree_without_a_page_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotBuiltError, match="is not built"):
        Built.found(tmp_path)


def test_a_reader_without_scripts_finds_the_report(written: Written) -> None:
    plain = told(written).partition("<noscript>")[2].partition("</noscript>")[0]
    assert "memcg_numa_stat_show" in plain
    assert "Ruled out:" in plain


# --- what it shows -------------------------------------------------------------------------------------------------


def test_a_diagnosis_opens_with_its_incident_and_leads_to_the_proof(written: Written, browser: Browser) -> None:
    names = ("home", "incidents", "cgroups", "audit", "node")
    first, *others = browser(told(written), "", *(f"page={name}" for name in names))
    for word in ("Who held it kubelet", "mem_cgroup_nr_lru_pages", "What to do", "Ruled out", "Copy the plan"):
        assert word in first.text
    incident = written.incident
    assert incident is not None
    links = "\n".join(first.links)
    assert f"cpu={incident.cpu}" in links
    assert "comm=kubelet&mode=kernel&q=%5Emem_cgroup_nr_lru_pages%24" in links
    assert "page=cgroups" in links
    shown = {name: other.text for name, other in zip(names, others, strict=True)}
    assert "What the average hid core 3" in shown["home"]
    assert "confidence" in shown["incidents"]
    assert "dying" in shown["cgroups"]
    assert "no machine was looked at" in shown["audit"]
    assert "are in the file; elsewhere the heat map is hatched" not in shown["node"], (
        "all of it is within half a minute"
    )
    assert not [name for name, text in shown.items() if "could not be read" in text]


ASKED: dict[str, tuple[int, int, int | None, str | None]] = {
    "": (0, 20, None, None),
    f"page=node&sel={span(10, 11)}": (10, 11, None, None),
    f"page=node&sel={span(10, 13)}": (10, 13, None, None),
    f"page=node&sel={span(10, 11)}&cpu=3": (10, 11, 3, None),
    "page=node&comm=kube*": (0, 20, None, "kubelet"),
}
"""Place -> the seconds, the core and the program whose samples it must count."""


def test_what_is_selected_and_filtered_is_folded_in_the_page(written: Written, browser: Browser) -> None:
    searched = f"page=node&sel={span(10, 11)}&cpu=3&q=^mem_cgroup_nr"
    compared = f"page=node&sel={span(10, 11)}&cmp={span(2, 3)}"
    *shown, found, difference = browser(page(written), *ASKED, searched, compared)
    for (place, (start, end, cpu, comm)), there in zip(ASKED.items(), shown, strict=True):
        count = samples_in(written, START_US + start * SECOND, START_US + end * SECOND, cpu, comm)
        assert count > 0
        assert f"all {count:,} samples" in there.text, place
    assert "100% matched" in found.text
    now, before = (samples_in(written, START_US + at * SECOND, START_US + (at + 1) * SECOND) for at in (10, 2))
    assert f"{now:,} samples · before {before:,}" in difference.text


def test_a_window_to_compare_with_comes_with_the_file(written: Written, browser: Browser) -> None:
    with open_recording(written.dir) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1)
        base = Selection(recording, START_US, START_US + 5 * SECOND, known=selection.stacks).counts()
        window = Window(selection.start_us, selection.end_us, UTC)
        compared = Reference(Window(START_US - 90 * SECOND, START_US - 85 * SECOND, UTC), base)
        text = report.of_selection(selection, "lab", window, {"inv": "1"}, base=compared)
    assert f"before {int(base.sum()):,}" in browser(text, "")[0].text


def test_no_sample_at_all_is_a_page_that_says_so(tmp_path: Path, browser: Browser) -> None:
    idle = write_recording(tmp_path / "idle", seconds=3, busy=0.0, incident=False)
    shown = browser(page(idle), "")[0].text
    assert re.search(r"No samples \d\d:\d\d:\d\d – \d\d:\d\d:\d\d: the node was idle, its cores [\d.]+% busy", shown), (
        shown
    )


def test_no_script_runs_but_those_of_the_page(written: Written) -> None:
    text = told(written)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert "unsafe-inline" not in policy.partition("style-src")[0]
    for script in re.findall(r"<script>(.*?)</script>", text, re.DOTALL):
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy


# --- more than fits ------------------------------------------------------------------------------------------------


PLAN = generate.Plan(hours=0.1)


@pytest.fixture(scope="module")
def large_page(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """Of six minutes of 96 cores, a third busy: a million samples, and one core that hangs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        large = generate.cached(PLAN)
    with open_recording(large) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1)
        window = Window(selection.start_us, selection.end_us, UTC)
        return report.of_selection(selection, "large", window, {}), int(selection.counts().sum())


def test_a_file_of_a_million_samples_is_below_one_megabyte(large_page: tuple[str, int]) -> None:
    text, total = large_page
    assert total > 900_000
    assert 600_000 < len(text.encode()) < 1_000_000


def test_it_says_what_it_holds_and_a_selection_finds_the_core_that_hangs(
    large_page: tuple[str, int], browser: Browser
) -> None:
    text, total = large_page
    start = PLAN.stuck_us / 1e6
    stuck = f"page=node&sel={start + 1:.3f}..{start + 8:.3f}&cpu={PLAN.stuck_cpu}"
    whole, part = browser(text, "", stuck)
    said = re.search(r"The file holds one of every (\d+) samples for what is selected", whole.text)
    assert said is not None
    assert int(said[1]) > 1
    assert whole.text.count(f"{total:,} samples") == 1, "the flame graph of the whole is exact"
    about = re.search(r"all ([\d,]+) samples", part.text)
    assert about is not None
    assert int(about[1].replace(",", "")) == pytest.approx(7 * generate.HZ, rel=0.5)


def test_a_diagnosis_holds_samples_around_what_it_found(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "AROUND_US", 2 * SECOND)
    spans: list[list[list[float]]] = []
    made = sample_table.build

    def seen(*args: object, **options: object) -> sample_table.SampleTable:
        table = made(*args, **options)  # type: ignore[arg-type]  # passed on
        spans.append(table.scalars["held"])
        return table

    monkeypatch.setattr(sample_table, "build", seen)
    text = told(written)
    incident = written.incident
    assert incident is not None
    ((start, end),) = spans[0]
    assert start == pytest.approx(incident.from_us / 1e6 - 2, abs=1.5)
    assert end < START_US / 1e6 + 20
    frozen = json.loads(re.search(r'id="frozen"[^>]*>(.*?)</script>', text)[1])  # type: ignore[index]  # it is there
    assert {"strip", "strip 1", "lanes", "incidents", "worst", "cgroups", "history"} <= set(frozen["answers"])
