"""The founding case on the page: from the symptom to the fix, each station a link to what proves it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect
from tests.browser.conftest import Visitor
from tests.helpers.stage import Recorded, Server
from tests.helpers.visit import Visit

pytestmark = pytest.mark.browser

HOT = "mem_cgroup_nr_lru_pages"


@pytest.fixture
def case(visit: Visit) -> Visit:
    """The page of the one incident."""
    visit.go("page=home&rec=founding-case")
    visit.page.get_by_role("link", name="Open the incident").click()
    expect(visit.page.locator(".pg-station")).to_have_count(9)
    return visit


def station(visit: Visit, label: str) -> Locator:
    return visit.page.locator(".pg-station", has=visit.page.locator(".pg-step", has_text=label))


def test_the_chain_says_what_happened_in_the_order_of_causes(case: Visit) -> None:
    steps = case.page.locator(".pg-station .pg-step").all_inner_texts()
    assert steps == [
        "Symptom", "Where", "Who held it", "Kernel function", "Why it was slow", "Source of the leak", "Requested by",
        "Caused by", "Fix",
    ]  # fmt: skip
    said = case.page.locator(".pg-station strong").all_inner_texts()
    assert said[1:4] == ["core 39", "kubelet", HOT]
    assert said[4] == "68,440 zombies"
    assert said[7].startswith("ecs.service")


def test_the_symptom_leads_to_the_event_on_the_axis(case: Visit) -> None:
    station(case, "Symptom").click()
    case.drawn()
    event = case.page.get_by_role("group", name="Events").get_by_role("button", name=re.compile("paused for too long"))
    expect(event).to_be_visible()
    low, high = case.span()
    from_, to = case.shown()
    assert from_ <= low < high <= to
    # back is the incident again
    case.page.go_back()
    expect(case.page.locator(".pg-station")).to_have_count(9)


def test_the_core_leads_to_its_six_seconds(case: Visit) -> None:
    station(case, "Where").first.click()
    case.drawn()
    assert case.said("cpu") == "39"
    words = case.page.locator("#chosen-in-words")
    expect(words).to_contain_text(re.compile(r"worst core 39 at 03:02:0\d: 100% kernel"))
    expect(words).to_contain_text(re.compile(r"average 3\d% busy"))


def test_the_hog_and_its_function_lead_to_the_flame_graph_with_it_marked(case: Visit) -> None:
    station(case, "Who held it").click()
    case.drawn()
    assert case.said("comm") == "kubelet"
    case.page.go_back()
    station(case, "Kernel function").click()
    case.drawn()
    assert case.said("q") == f"^{HOT}$"
    expect(case.matched).to_contain_text(re.compile(r"^(9\d|100|8\d)[\d.]*% matched"))


def test_the_zombies_and_the_culprit_lead_to_their_numbers(case: Visit) -> None:
    station(case, "Why it was slow").click()
    case.wait_said("page", "cgroups")
    expect(case.page.locator("main")).to_contain_text("68,440")
    case.page.go_back()
    # what names the culprit are its containers, which are counted there too
    station(case, "Caused by").click()
    case.wait_said("page", "cgroups")
    expect(case.page.locator("#containers")).to_contain_text("ecs-agent")


def test_the_plan_is_copied_and_what_was_ruled_out_has_numbers(case: Visit) -> None:
    station(case, "Fix").click()
    case.button("Copy the plan").click()
    case.page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('systemctl disable')")
    plan = str(case.page.evaluate("navigator.clipboard.readText()")).splitlines()
    assert "systemctl disable --now ecs.service" in plan
    ruled_out = case.page.locator(".pg-ruled tbody tr")
    assert ruled_out.count() > 5
    assert any(re.search(r"\d", text) for text in ruled_out.locator("td.num").all_inner_texts())


def test_the_report_is_saved_as_markdown_and_as_one_file(case: Visit, tmp_path: Path) -> None:
    with case.page.expect_download() as saved:
        case.page.get_by_role("button", name="Markdown", exact=True).click()
    assert "68,440" in Path(saved.value.path()).read_text()
    with case.page.expect_download() as saved:
        case.page.get_by_role("button", name="Save as HTML").click()
    kept = Path(saved.value.path()).read_bytes()
    assert kept.lstrip().lower().startswith(b"<!doctype html>")
    assert len(kept) < 1_000_000


def test_the_hog_of_this_machine_is_an_incident_too(visit: Visit, recorded: Recorded) -> None:
    visit.go("page=incidents")
    rows = visit.page.locator(".pg-incidents tbody tr")
    expect(rows.first).to_be_visible()
    # What else this machine suffered in these seconds may have joined it.
    named = rows.filter(has_text="hog")
    (named if named.count() else rows).first.get_by_role("link").first.click()
    station(visit, "Who held it").click()
    visit.drawn()
    low, high = visit.span()
    assert low < recorded.hog_to
    assert high > recorded.hog_from


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_fix_has_done_stands_beside_the_plan(
    visitor: Visitor, server: Server, fix_log: Path, pictures: Path, scheme: str
) -> None:
    """Lines as `fix` writes them; the page shows states, who, before and after, and never applies."""
    visit = visitor(server.origin, color_scheme=scheme)
    visit.go("page=home&rec=founding-case")
    visit.page.get_by_role("link", name="Open the incident").click()
    expect(visit.page.locator(".pg-fix ol > li")).to_have_count(6)
    assert visit.page.locator(".pg-log").count() == 0
    _done(fix_log, visit.page.locator("main code").first.inner_text())
    visit.page.reload()
    log = visit.page.locator(".pg-log")
    expect(log.locator("tbody tr")).to_have_count(2)
    expect(log).to_contain_text("anna")
    expect(log).to_contain_text("file state: enabled → disabled")
    expect(log).to_contain_text("can't tell")
    first = visit.page.locator(".pg-fix ol > li").first
    expect(first).to_contain_text("applied")
    expect(first).to_contain_text("whatever needs ecs.service goes without it")
    expect(visit.page.locator(".pg-type")).to_contain_text("--undo")
    assert visit.page.locator(".pg-fix button, .pg-log button").all_inner_texts().count("apply") == 0
    visit.page.set_viewport_size({"width": 1280, "height": 1900})
    visit.page.screenshot(path=pictures / f"fix-{scheme}.png")
    fix_log.unlink()


def _done(place: Path, incident: str) -> None:
    step = "unit.disable:ecs.service"
    who = {"uid": 0, "sudo": "anna", "login": 1000, "pid": 7}
    before = {"is_running": True, "file_state": "enabled"}
    after = {"is_running": False, "file_state": "disabled"}
    seen = {"from": 1.0, "to": 61.0, "verdict": "not verified",
            "checks": [{"name": "recorded", "ok": None, "text": "no recorder runs here"}]}  # fmt: skip
    action = {"kind": "unit.disable", "arguments": {"unit": "ecs.service"}}
    common = {"at": 1775038996.5, "run": "ab", "who": who, "target": f"incident:{incident}", "why": ""}
    lines = [
        {**common, "step": step, "event": "applying", "action": action, "before": before, "after": None},
        {**common, "step": step, "event": "applied", "action": action, "before": before, "after": after},
        {**common, "step": "", "event": "verified", "action": None, "before": None, "after": seen,
         "why": "not verified"},
    ]  # fmt: skip
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
