"""Files for other tools name the conditions, reasons and alerts that exist. Slurm, sos and Alertmanager themselves read
theirs in tests/agent."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from zombiescope.diagnosis import patterns
from zombiescope.node.cluster.incident_news import CONDITIONS, HARDWARE_FAULT, REPAIRED

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
REASONS = {one.reason: one.repair for one in patterns.every()}


def loaded(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


def test_node_problem_detector_asks_for_every_condition() -> None:
    config = json.loads((DEPLOY / "node-problem-detector/zombiescope.json").read_text())
    assert [one["type"] for one in config["conditions"]] == list(CONDITIONS)
    assert [rule["args"] for rule in config["rules"]] == [["status", "--condition", one] for one in CONDITIONS]
    assert {rule["condition"] for rule in config["rules"]} == set(CONDITIONS)


def test_nvsentinel_repairs_as_the_patterns_say() -> None:
    found: dict[str, str] = {}
    for policy in loaded("nvsentinel/values.yaml")["kubernetes-object-monitor"]["policies"]:
        event, expression = policy["healthEvent"], policy["predicate"]["expression"]
        known = set(re.findall(r'"([A-Za-z]+)"', expression)) - {"True"}
        conditions = known & set(CONDITIONS)
        assert conditions
        if HARDWARE_FAULT in conditions:
            assert event["isFatal"]
            found |= dict.fromkeys(known - conditions, event["recommendedAction"])
        else:
            assert (event["isFatal"], event["recommendedAction"]) == (False, "NONE")
    assert found == {reason: repair for reason, repair in REASONS.items() if repair in REPAIRED}


def test_node_health_check_replaces_a_machine_for_its_hardware_only() -> None:
    (condition,) = loaded("node-health-check/nodehealthcheck.yaml")["spec"]["unhealthyConditions"]
    assert (condition["type"], condition["status"]) == (HARDWARE_FAULT, "True")


def test_the_page_lists_the_repair_of_every_pattern_that_has_one() -> None:
    text = (ROOT / "docs/integrations.md").read_text()
    listed: dict[str, str] = {}
    for row in re.findall(r"^\| (?:`HardwareFault`|none) \| (.+?) \| `([A-Z_]+)` \|", text, re.MULTILINE):
        listed |= dict.fromkeys(re.findall(r"`(\w+)`", row[0]), row[1])
    assert listed == {reason: repair for reason, repair in REASONS.items() if repair != "NONE"}


def test_alerts_that_are_silenced_exist() -> None:
    alerts = {rule["alert"] for group in loaded("prometheus/alerts.yaml")["groups"] for rule in group["rules"]}
    for rule in loaded("prometheus/alertmanager.yaml")["inhibit_rules"]:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            stem, names = re.search(r'=~? "?(\w+?)(?:\(([\w|]+)\))?"?$', matcher).groups()  # type: ignore[union-attr]
            assert {f"{stem}{name}" for name in (names or "").split("|")} <= alerts, matcher


@pytest.mark.parametrize("script", sorted((DEPLOY / "slurm").iterdir()), ids=lambda path: path.name)
def test_the_scripts_for_slurm_are_correct_shell(script: Path) -> None:
    assert subprocess.run(["bash", "-n", script], capture_output=True, timeout=30).returncode == 0
    assert script.stat().st_mode & 0o111
