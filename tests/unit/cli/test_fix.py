"""`fix`: a plan without --apply, a refusal where it must not, and the truth about what it did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.cli import Done
from tests.helpers.remedies import StandInManager, systemd
from tests.helpers.scenes import Scene

from zombiescope.cli import fix
from zombiescope.cli.main import run
from zombiescope.fix import log, plan_incident

WALK = "do_syscall_64 vfs_read memcg_numa_stat_show mem_cgroup_nr_lru_pages"
UNIT = "ecs.service"


def sick(unit: str = UNIT) -> Scene:
    scene = Scene().census(240, 68_440).leak(f"/system.slice/{unit}/*", 68_000, 500, 500, "ecs-agent", unit=unit)
    return scene.hog(WALK, "kubelet")


@dataclass(frozen=True)
class Here:
    """The command line in this process, so that it asks the stand-in for systemd."""

    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Done:
        self.capture.readouterr()
        code = run(list(words))
        said = self.capture.readouterr()
        return Done(code, said.out, said.err)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.fixture
def bus() -> Iterator[StandInManager]:
    with systemd() as made:
        yield made


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording of this machine, as far as `fix` asks, and a log of its own."""
    monkeypatch.setenv("ZOMBIESCOPE_FIX_DIR", str(tmp_path / "fix"))
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(fix, "_is_this_node", lambda _: True)
    monkeypatch.setattr(fix, "_require_ours", lambda *_: None)
    monkeypatch.setattr(fix, "_is_root", lambda: True)
    monkeypatch.setattr(plan_incident, "MORE", {})  # nothing of the machine that runs the tests
    return sick().write(tmp_path / "rec")


def incident(cli: Here, place: Path) -> str:
    found = cli("diagnose", str(place), "--json").document["incidents"]
    return str(found[0]["id"])


def steps(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {step["id"]: step for step in document["steps"]}


def test_without_apply_it_is_a_plan_and_nothing_else(
    cli: Here, place: Path, bus: StandInManager, tmp_path: Path
) -> None:
    bus.add(UNIT)
    done = cli("fix", str(place), "--incident", incident(cli, place), "--json")
    assert done.code == 0
    step = steps(done.document)[f"unit.disable:{UNIT}"]
    assert {"id", "does", "command", "risk", "undo", "verify", "state"} <= step.keys()
    assert (step["state"], step["command"]) == ("planned", f"systemctl disable --now {UNIT}")
    assert done.document["verified"] is None
    assert bus.changes() == []
    assert not (tmp_path / "fix").exists()


def test_applied_without_a_recorder_it_is_not_verified(cli: Here, place: Path, bus: StandInManager) -> None:
    bus.add(UNIT)
    name = incident(cli, place)
    done = cli("fix", str(place), "--incident", name, "--apply", "--yes", "--json")
    assert done.code == 3
    assert steps(done.document)[f"unit.disable:{UNIT}"]["state"] == "applied"
    assert done.document["verified"] is None
    assert done.document["verification"]["verdict"] == "can't tell"
    assert bus.changes() == [f"disable {UNIT}", f"stop {UNIT}"]
    again = cli("fix", str(place), "--incident", name, "--json")
    assert steps(again.document)[f"unit.disable:{UNIT}"]["state"] == "applied"
    assert [entry["event"] for entry in again.document["log"]] == ["planned", "applying", "applied", "verified"]
    assert "applied     unit.disable:" in cli("fix", str(place), "--incident", name).out
    back = cli("fix", str(place), "--incident", name, "--undo", "--yes", "--json")
    assert (back.code, back.document["steps"][0]["state"]) == (0, "undone")
    assert cli("fix", str(place), "--incident", name, "--undo", "--yes").code == 1


def test_a_step_that_fails_says_how_to_go_back(cli: Here, place: Path, bus: StandInManager) -> None:
    from tests.unit.fix.test_units import DENIED

    bus.add(UNIT)
    bus.refuses["stop"] = DENIED
    done = cli("fix", str(place), "--incident", incident(cli, place), "--apply", "--yes")
    assert done.code == 1
    assert "--undo" in done.err
    assert "Access denied" in done.out + done.err


def test_a_protected_unit_is_only_changed_by_name(cli: Here, place: Path, tmp_path: Path, bus: StandInManager) -> None:
    protected = sick("containerd.service").write(tmp_path / "other")
    bus.add("containerd.service")
    name = incident(cli, protected)
    assert cli("fix", str(protected), "--incident", name, "--apply", "--yes").code == 3
    assert bus.changes() == []


def test_a_recording_of_another_machine_is_never_applied_here(
    cli: Here, place: Path, bus: StandInManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    done = cli("fix", str(place), "--incident", incident(cli, place), "--apply", "--yes")
    assert done.code == 1
    assert "not of this machine" in done.err
    assert bus.calls == []


def test_only_root_may(cli: Here, place: Path, bus: StandInManager, monkeypatch: pytest.MonkeyPatch) -> None:
    bus.add(UNIT)
    monkeypatch.setattr(fix, "_is_root", lambda: False)
    done = cli("fix", str(place), "--incident", incident(cli, place), "--apply", "--yes")
    assert done.code == 1
    assert bus.changes() == []


@pytest.mark.parametrize("words", [(), ("--incident", "a", "--finding", "b"), ("--incident", "a", "--apply", "--undo")])
def test_what_makes_no_sense_is_wrong_usage(cli: Here, words: tuple[str, ...]) -> None:
    assert cli("fix", *words).code == 2


def test_the_log_is_one_object_a_line(cli: Here, place: Path, bus: StandInManager, tmp_path: Path) -> None:
    bus.add(UNIT)
    cli("fix", str(place), "--incident", incident(cli, place), "--apply", "--yes")
    lines = (tmp_path / "fix" / log.FILE).read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["planned", "applying", "applied", "verified"]
