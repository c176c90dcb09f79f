"""What the packaged unit takes away from a configuration is named, with the drop-in that gives it back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from zombiescope.agent import parts, services, unit_limits
from zombiescope.agent.config import load
from zombiescope.agent.services import Services, Settings
from zombiescope.cli.main import run
from zombiescope.node.systemd.unit_files import Unit

ROOT = Path(__file__).parents[3]
PACKAGED = (ROOT / "packaging/zombiescope.service").read_text()
BLOCKED: dict[str, dict[str, Any]] = {
    "webhook": {"url": "http://10.244.0.7:8080/hook"},
    "profiles": {"url": "http://pyroscope.monitoring:4040"},
    "shipping": {"target": "/mnt/archive"},
    "metrics": {"listen": "0.0.0.0:9321", "open": True},
}


def unit(root: Path, *drop_ins: str) -> Unit:
    """As it is installed in a root directory, with drop-ins."""
    place = root / "etc/systemd/system"
    (place / f"{unit_limits.UNIT}.d").mkdir(parents=True)
    (place / unit_limits.UNIT).write_text(PACKAGED)
    for number, text in enumerate(drop_ins):
        (place / f"{unit_limits.UNIT}.d/{number}.conf").write_text(text)
    found = unit_limits.installed(str(root))
    assert found is not None
    return found


def sections(given: dict[str, Any]) -> dict[str, Any]:
    loaded = load.read(yaml.safe_dump(given), "agent.yaml", parts.sections(), {})
    assert loaded.mistakes == ()
    return loaded.sections


def found(given: dict[str, Any], of: Unit, *there: str) -> dict[str, str]:
    return {one.key: one.needs for one in unit_limits.limits(sections(given), of, lambda path: path in there)}


def test_each_setting_that_the_unit_defeats_is_named_with_its_line(tmp_path: Path) -> None:
    assert found(BLOCKED, unit(tmp_path), unit_limits.RAY) == {
        "metrics.listen": "IPAddressAllow=10.0.0.0/8",
        "webhook.url": "IPAddressAllow=10.244.0.7",
        "profiles.url": "IPAddressAllow=any",  # the addresses of a name change
        "shipping.target": "ReadWritePaths=/mnt/archive",
        "ray.enabled": "BindReadOnlyPaths=-/tmp/ray",
    }


def test_the_drop_in_that_is_printed_takes_all_of_it_away(tmp_path: Path) -> None:
    first = unit_limits.limits(sections(BLOCKED), unit(tmp_path / "a"), lambda _: True)
    written = unit_limits.drop_in(first)
    assert written.startswith("[Service]\n")
    assert found(BLOCKED, unit(tmp_path / "b", written), unit_limits.RAY) == {}


def test_the_drop_ins_that_are_shipped_do_what_they_are_for(tmp_path: Path) -> None:
    shipped = {path.stem: path.read_text() for path in (ROOT / "packaging/drop-ins").glob("*.conf")}
    left = found(BLOCKED, unit(tmp_path / "a", shipped["egress"]), unit_limits.RAY)
    assert set(left) == {"shipping.target", "ray.enabled"}
    assert "metrics.listen" not in found(BLOCKED, unit(tmp_path / "b", shipped["scraping"]))
    assert found({}, unit(tmp_path / "c", shipped["ray"]), unit_limits.RAY) == {}


def test_what_the_unit_allows_is_no_limit(tmp_path: Path) -> None:
    given = {
        "webhook": {"url": "http://127.0.0.1:9093/api"}, "shipping": {"target": "/var/lib/zombiescope/archive"},
        "recorder": {"dir": "/var/lib/zombiescope"},
    }  # fmt: skip
    assert found(given, unit(tmp_path / "as it is")) == {}
    other = unit(tmp_path / "other", "[Service]\nIPAddressAllow=10.244.0.0/16\n")
    assert found({"webhook": BLOCKED["webhook"]}, other) == {}


def test_the_path_of_an_address_that_is_a_secret_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("https://hooks.example.org/services/T0/B0/hunter2\n")
    given = sections({"webhook": {"url_file": str(file)}})
    (one,) = unit_limits.limits(given, unit(tmp_path), lambda _: False)
    assert "hooks.example.org" in str(one)
    assert "hunter2" not in str(one)


def test_check_config_prints_the_drop_in_and_ends_with_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(yaml.safe_dump({"webhook": BLOCKED["webhook"]}))
    installed = unit(tmp_path)
    monkeypatch.setattr(unit_limits, "installed", lambda: installed)
    monkeypatch.setattr(unit_limits, "is_on_node", lambda _: False)
    assert run(["agent", "--config", str(file), "--check-config"]) == 3
    assert "IPAddressAllow=10.244.0.7" in capsys.readouterr().err
    assert run(["agent", "--config", str(file), "--check-config", "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["usable"] is True
    assert "webhook.url" in {one["key"] for one in document["unit"]}


def test_what_has_no_effect_stays_in_readyz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "say", lambda _: None)
    file = tmp_path / "agent.yaml"
    file.write_text("labels: {zone: a}\n")
    given = Settings(str(file), False, str(tmp_path), "n", beats=0, starts=0, limits=("webhook.url: x",))
    condition = Services(given)._health.conditions()[services.CONFIGURATION]
    assert condition.state == "degraded"
    assert "labels is not known" in condition.text
    assert "webhook.url" in condition.text
