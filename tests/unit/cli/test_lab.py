"""`zombiescope lab` before it does anything: it lists, asks, and refuses."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.helpers.cli import Cli

from zombiescope.cli.failure import Failure
from zombiescope.cli.lab import node_run, scenario_run, scenarios, score
from zombiescope.cli.lab.scenario_run import Outcome, _Watched, of_document
from zombiescope.cli.private_recorder import PrivateRecorder
from zombiescope.lab import requirements, verdict
from zombiescope.lab.failure import LabError
from zombiescope.lab.node import Done, LabNode
from zombiescope.lab.scenario import Scenario, by_id, every


def test_list_tells_what_each_scenario_does_and_needs(cli: Cli) -> None:
    listed = cli("lab", "list", "--json").document["scenarios"]
    assert [one["id"] for one in listed] == [one.id for one in every()]
    for one in listed:
        assert one["does"]
        assert isinstance(one["lacks"], list)


def test_what_can_only_run_in_a_node_is_told_as_not_run_when_none_comes_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_node(chosen: object, *, fix: bool, keep: object) -> Iterator[Outcome]:
        if chosen and not fix and keep is None:
            raise LabError("the node did not come up")
        yield from ()

    monkeypatch.setattr(node_run, "perform_all", no_node)
    monkeypatch.setattr(requirements, "in_lab_node", lambda: False)
    monkeypatch.setattr(requirements, "systemd_runs", lambda: False)
    chosen = [by_id("global-reclaim"), by_id("zombie-unit")]
    assert score._in_a_node(chosen, node=True, whole_node=False) == chosen
    told = list(score._all(chosen, 1.0, chosen, None))
    assert [(one.scenario.id, one.skipped) for one in told] == [
        ("global-reclaim", "the node did not come up"), ("zombie-unit", "the node did not come up"),
    ]  # fmt: skip
    without = list(score._all(chosen, 1.0, score._in_a_node(chosen, node=False, whole_node=False), None))
    assert [one.skipped for one in without] == ["only in lab node"] * 2


def test_a_whole_node_is_asked_for_what_concerns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "in_lab_node", lambda: False)
    monkeypatch.setattr(requirements, "systemd_runs", lambda: False)
    chosen = [by_id(name) for name in ("mount-storm", "cfs-throttle", "zombie-unit")]
    assert [one.id for one in score._in_a_node(chosen, node=True, whole_node=True)] == ["zombie-unit", "cfs-throttle"]


def test_it_does_nothing_without_a_yes(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "lacks", lambda _: [])
    with pytest.raises(Failure, match="add --yes"):
        scenarios.run("mount-storm")


def test_it_says_what_it_will_do_before_it_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(requirements, "lacks", lambda _: [])
    monkeypatch.setattr("sys.stdin", _Terminal())
    monkeypatch.setattr("typer.confirm", _no)
    with pytest.raises(_SaidNoError):
        scenarios.run("mount-storm")
    assert "makes 3,000 mounts in a separate mount namespace" in capsys.readouterr().err


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class _SaidNoError(Exception):
    pass


def _no(*_: object, **__: object) -> None:
    raise _SaidNoError


def test_a_machine_that_is_not_fit_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "lacks", lambda _: ["needs root: sudo zombiescope lab run mount-storm"])
    with pytest.raises(Failure, match="mount-storm cannot run here: needs root"):
        scenarios.run("mount-storm", yes=True)


def test_a_name_that_is_none(cli: Cli) -> None:
    done = cli("lab", "run", "no-such")
    assert done.code == 2
    assert "'zombiescope lab list'" in done.err


def test_the_idle_hour_raises_nothing(cli: Cli) -> None:
    done = cli("lab", "run", "healthy-idle", "--yes", "--json")
    assert done.code == 0, done.err
    assert done.document["pass"] is True
    assert done.document["seconds"] == 3600


@pytest.mark.parametrize("option", ["--background", "--resume", "--minutes"])
def test_an_option_of_the_hold_out_belongs_to_it(cli: Cli, option: str) -> None:
    done = cli("lab", "score", option, "1", "--yes", "--only", "healthy-idle")
    assert done.code == 2
    assert "--hold-out" in done.err


def test_what_rang_in_a_node_rang() -> None:
    """A healthy load that another machine ran: its false alarms come with its document."""
    scenario = by_id("healthy-compile")
    rang = {"id": "1", "from": 5.0, "severity": "warning", "causes": [{"summary": "cc1 makes processes"}]}
    there = Outcome(scenario, seconds=60.0, alarms=(rang,))
    assert not there.passed
    here = of_document(scenario, {**there.document(), "where": "lab node"})
    assert not here.passed
    assert here.document()["false_alarms"] == [{"at": 5.0, "severity": "warning", "summary": "cc1 makes processes"}]


def test_an_alarm_that_the_doctor_takes_back_while_it_runs_is_heard() -> None:
    watched = _Watched()
    rang = {"id": "1", "from": 5.0, "to": 6.0, "severity": "warning", "causes": []}
    watched.note([rang])
    watched.note([{**rang, "severity": "info"}])
    watched.note([])
    assert verdict.false_alarms(list(watched.said.values()), 0, 10) == [rang]


class _EmulatedNode:
    """A machine of `lab node` that answers what the command in it would."""

    accelerated = False

    def __init__(self, scenario: Scenario) -> None:
        self.commands: list[tuple[str, ...]] = []
        self.copied: list[tuple[str, Path]] = []
        self._said = Outcome(scenario, onset_to_named_s=40.0, ran="2026-11-18, Linux 6.1, 4 cores").document()

    def run(self, *argv: str, limit_s: float = 0.0) -> Done:
        self.commands.append(argv)
        return Done(argv, 0, json.dumps(self._said).encode(), b"", limit_s)

    def get(self, path: str, into: Path) -> Path:
        self.copied.append((path, into))
        return into


def test_a_fault_lasts_longer_on_an_emulated_machine_and_its_recording_comes_back(tmp_path: Path) -> None:
    """It is so slow that the live diagnosis of a 12 s fault ended after the fault: 'never named live'."""
    scenario = by_id("zombie-limit")
    booted = _EmulatedNode(scenario)
    outcome = node_run._perform(cast("LabNode", booted), scenario, "lab node", False, tmp_path)
    asked = booted.commands[0]
    assert float(asked[asked.index("--seconds") + 1]) >= 4 * scenario.seconds
    assert booted.copied == [(f"{node_run.KEPT}/zombie-limit", tmp_path)]
    assert outcome.ran == "2026-11-18, Linux 6.1, 4 cores, emulated"
    booted.accelerated = True
    assert "--seconds" not in node_run._arguments(cast("LabNode", booted), scenario, False, None)


def test_a_machine_that_is_kept_is_not_hurt_for_longer_than_a_minute(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "lacks", lambda _: [])
    done = cli("lab", "run", "mount-storm", "--yes", "--seconds", "61")
    assert done.code == 2
    assert "60 s at most" in done.err


_LOADS = """
import os, sys, time
while not os.path.exists(sys.argv[2]):
    pass
sys.stdin.read()
"""


def test_a_fault_begins_when_the_live_diagnosis_has_loaded(tmp_path: Path) -> None:
    """What loads burns a core, and what waits for work does not."""
    loaded = tmp_path / "loaded"
    child = [sys.executable, "-c", _LOADS, "zombiescope.diagnosis.standby", str(loaded)]
    parent = "import subprocess, sys; subprocess.run(sys.argv[1:], stdin=sys.stdin)"
    with subprocess.Popen([sys.executable, "-c", parent, *child], stdin=subprocess.PIPE) as process:
        recorder = PrivateRecorder(tmp_path, process)
        assert not recorder.wait_for_live_diagnosis(2.5)
        loaded.touch()
        assert recorder.wait_for_live_diagnosis(60.0)
        process.communicate()


def test_a_file_that_the_live_diagnosis_replaces_while_it_is_copied_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen in a round of hours: a frozen window was known better just then, and the scenario counted as not run."""
    frozen = tmp_path / "home" / "node=lab" / "frozen"
    frozen.mkdir(parents=True)
    (frozen / "replaced.json").write_text("{}")
    (frozen / "stays.json").write_text("{}")
    real = shutil.copy2

    def replaced_meanwhile(source: str, into: str) -> object:
        if source.endswith("replaced.json"):
            Path(source).unlink()
        return real(source, into)

    monkeypatch.setattr(shutil, "copy2", replaced_meanwhile)
    scenario_run._copied(tmp_path / "home", tmp_path / "kept")
    assert [one.name for one in (tmp_path / "kept" / "node=lab" / "frozen").iterdir()] == ["stays.json"]
