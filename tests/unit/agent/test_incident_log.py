"""Incidents as lines of JSON on standard output."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from zombiescope.agent import incident_log, parts
from zombiescope.agent.health import Health
from zombiescope.agent.incident_log import IncidentLogSection, IncidentLogService, services
from zombiescope.agent.service import Context
from zombiescope.agent.tally import Tally


def note(place: Path, *incidents: dict[str, Any]) -> None:
    (place / "new").write_text(json.dumps({"at": time.time(), "incidents": incidents}))
    (place / "new").rename(place / "incidents.json")


def incident(state: str, severity: str) -> dict[str, Any]:
    causes = [{"pattern": "zombie-memcg", "summary": "kubelet --token=hunter22hunter22\nwalks"}]
    return {"id": "a1", "from": 5.0, "to": 9.0, "state": state, "severity": severity, "causes": causes, "symptoms": []}


def test_each_beginning_worsening_and_end_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(incident_log, "POLL_S", 0.01)
    written: list[dict[str, Any]] = []
    stop = threading.Event()
    context = Context("incident_log", tmp_path, "gpu-17", "gpu-17", Tally(parts.families()), Health(lambda _: None))
    service = IncidentLogService(IncidentLogSection(enabled=True))
    note(tmp_path)
    thread = threading.Thread(target=service.run, args=(context, stop), daemon=True)
    thread.start()
    try:
        steps = (("open", "info"), ("open", "info"), ("open", "critical"), ("closed", "critical"))
        for place, (state, severity) in enumerate(steps):
            time.sleep(0.1)
            note(tmp_path, {**incident(state, severity), "recurrences": [place]})
        end = time.monotonic() + 10
        while len(written) < 3 and time.monotonic() < end:
            time.sleep(0.02)
            written += [json.loads(one) for one in capsys.readouterr().out.splitlines()]
    finally:
        stop.set()
        thread.join(10)
    assert [(one["change"], one["severity"]) for one in written] == [
        ("opened", "info"), ("changed", "critical"), ("closed", "critical"),
    ]  # fmt: skip
    assert {one["schema"] for one in written} == {"zombiescope.incident_change/1"}
    assert {(one["node"], one["incident"], one["cause"]) for one in written} == {("gpu-17", "a1", "zombie-memcg")}
    assert "hunter22" not in json.dumps(written)
    assert [one["to"] for one in written] == [None, None, 9.0]


def test_it_is_off_until_it_is_asked_for() -> None:
    assert services(IncidentLogSection()) == ()
    assert len(services(IncidentLogSection(enabled=True))) == 1
