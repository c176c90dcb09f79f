"""What is shipped for Prometheus and Grafana: rules that promtool accepts and proves, a dashboard that can be loaded,
and no metric, page or kind of event in them that does not exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from zombiescope.agent import parts
from zombiescope.agent.metrics.events_account import SERIOUS
from zombiescope.agent.metrics.reference import document
from zombiescope.diagnosis import patterns

ROOT = Path(__file__).parents[3]
PROMETHEUS = ROOT / "deploy/prometheus"
DASHBOARD = json.loads((ROOT / "deploy/grafana/zombiescope.json").read_text())
METRIC = re.compile(r"\b(zombiescope_[a-z0-9_]+)\b")
PANELS = {"row", "stat", "table", "timeseries"}


def rules(name: str) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load((PROMETHEUS / name).read_text())["groups"] for rule in group["rules"]]


def exported() -> set[str]:
    names = {family.name for family in parts.families()}
    histograms = [family.name for family in parts.families() if family.kind == "histogram"]
    return names | {f"{name}_{end}" for name in histograms for end in ("bucket", "sum", "count")}


def used(expression: str) -> set[str]:
    return set(METRIC.findall(re.sub(r"[a-z]+:zombiescope_\w+:\w+", "", expression)))


def promtool(*arguments: str | Path) -> str:
    if shutil.which("promtool") is None:
        pytest.skip("needs promtool (Debian package prometheus)")
    done = subprocess.run(["promtool", *arguments], cwd=PROMETHEUS, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_accepts_the_rules() -> None:
    assert "SUCCESS" in promtool("check", "rules", "alerts.yaml", "recording.yaml")


def test_promtool_proves_the_alerts() -> None:
    assert "SUCCESS" in promtool("test", "rules", "alerts_test.yaml")


def test_every_alert_of_a_node_is_tried_or_simple() -> None:
    tried = set(re.findall(r"alertname: (\w+)", (PROMETHEUS / "alerts_test.yaml").read_text()))
    assert len(tried) >= 7
    assert tried <= {rule["alert"] for rule in rules("alerts.yaml")}


@pytest.mark.parametrize(
    "rule", [*rules("alerts.yaml"), *rules("recording.yaml")], ids=lambda r: r.get("alert") or r["record"]
)
def test_a_rule_uses_what_is_exported(rule: dict[str, Any]) -> None:
    assert used(rule["expr"]) <= exported()
    assert used(rule["expr"]) or "up{job=" in rule["expr"]


@pytest.mark.parametrize("rule", rules("alerts.yaml"), ids=lambda r: r["alert"])
def test_an_alert_has_what_whoever_is_called_needs(rule: dict[str, Any]) -> None:
    assert rule["alert"].startswith("Zombiescope")
    severity = rule["labels"]["severity"]
    assert severity in ("info", "warning", "critical", "{{ $labels.severity }}")
    said = rule["annotations"]
    assert set(said) == {"summary", "description", "runbook_url"}
    if "patterns/" in said["runbook_url"]:
        assert [page for page in pages_of(said["runbook_url"]) if not page.exists()] == []
    else:
        page, _, anchor = said["runbook_url"].partition("#")
        assert f"\n## {rule['alert']}\n" in (ROOT / page).read_text()
        assert anchor == rule["alert"].lower()


def pages_of(url: str) -> list[Path]:
    """In docs/, each that the address may name: one of the kinds of event chooses among several."""
    place = url.removeprefix("docs/patterns/").removesuffix(".md")
    every = [one.id for one in patterns.every()]
    names = every if "$labels.cause" in place else re.findall(r"}}([a-z-]+)", place) or [place]
    return [ROOT / f"docs/patterns/{name}.md" for name in names]


def test_every_pattern_has_the_page_that_its_alert_points_to() -> None:
    assert [one.id for one in patterns.every() if not (ROOT / f"docs/patterns/{one.id}.md").exists()] == []


def test_the_kernel_events_that_alert_are_those_that_are_there_from_the_beginning() -> None:
    found = [rule for rule in rules("alerts.yaml") if rule["alert"] == "ZombiescopeKernelComplains"]
    kinds = [kind for rule in found for kind in re.findall(r'kind=~"([^"]+)"', rule["expr"])[0].split("|")]
    assert len(kinds) == len(set(kinds))
    assert set(kinds) == SERIOUS


def test_a_line_of_the_kernel_is_as_severe_as_what_it_means() -> None:
    severities = {
        kind: rule["labels"]["severity"]
        for rule in rules("alerts.yaml") if rule["alert"] == "ZombiescopeKernelComplains"
        for kind in re.findall(r'kind=~"([^"]+)"', rule["expr"])[0].split("|")
    }  # fmt: skip
    assert severities["oom_kill"] == "info"  # one process at its own limit wakes nobody
    assert severities["nfs_not_responding"] == "warning"
    assert severities["gpu_xid"] == severities["nic_reset"] == severities["soft_lockup"] == "critical"


# --- the dashboard ---------------------------------------------------------------------------------------------------


def test_grafana_can_load_the_dashboard() -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", DASHBOARD["uid"])
    assert DASHBOARD["schemaVersion"] >= 36
    assert {"title", "panels", "templating", "time", "annotations"} <= set(DASHBOARD)
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {panel["type"] for panel in panels} <= PANELS
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    assert variables == {"datasource", "instance", "page"}
    (annotation,) = DASHBOARD["annotations"]["list"]
    assert used(annotation["expr"]) == {"zombiescope_incidents_total"}
    links = [
        link["url"] for panel in panels for link in panel.get("fieldConfig", {}).get("defaults", {}).get("links", ())
    ]
    assert links
    assert set(links) == {"${page}/?page=incidents&node=${__field.labels.instance}"}


def test_its_panels_lie_beside_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize(
    "panel", [one for one in DASHBOARD["panels"] if one["type"] != "row"], ids=lambda p: p["title"]
)
def test_a_panel_shows_what_is_exported(panel: dict[str, Any]) -> None:
    assert panel["datasource"]["uid"] == "${datasource}"
    assert panel["targets"]
    for target in panel["targets"]:
        assert used(target["expr"])
        assert used(target["expr"]) <= exported()


def test_the_page_of_metrics_is_that_of_the_code() -> None:
    """`python -m zombiescope.agent.metrics.reference > docs/metrics.md` writes it."""
    assert (ROOT / "docs/metrics.md").read_text() == document()


def test_names_are_as_prometheus_wants_them() -> None:
    for family in parts.families():
        assert re.fullmatch(r"zombiescope_[a-z0-9_]+", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter"), family.name
        assert bool(family.labels) == bool(family.per), family.name
        assert family.doc.endswith(".")


def test_the_number_of_series_is_bounded() -> None:
    """On a node of 192 cores and 16 GPUs, whatever names its tenants choose. The account of GPU seconds by job, and who
    is on a GPU, are 225 of these."""
    assert sum(family.most + 1 for family in parts.families() if "cpu" not in family.labels) < 1650
