"""`zombiescope lab` before it does anything: it lists, asks, and refuses."""

from __future__ import annotations

import io

import pytest
from tests.unit.commands.cli import Cli

from zombiescope.commands.failure import Failure
from zombiescope.commands.lab import scenarios
from zombiescope.lab import needs
from zombiescope.lab.scenario import every


def test_list_tells_what_each_scenario_does_and_needs(cli: Cli) -> None:
    listed = cli("lab", "list", "--json").document["scenarios"]
    assert [one["id"] for one in listed] == [one.id for one in every()]
    for one in listed:
        assert one["does"]
        assert isinstance(one["lacks"], list)


def test_it_does_nothing_without_a_yes(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "lacks", lambda _: [])
    with pytest.raises(Failure, match="--yes says yes"):
        scenarios.run("mount-storm")


def test_it_says_what_it_will_do_before_it_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needs, "lacks", lambda _: [])
    monkeypatch.setattr("sys.stdin", _Terminal())
    monkeypatch.setattr("typer.confirm", _no)
    with pytest.raises(_SaidNoError):
        scenarios.run("mount-storm")
    assert "makes 3,000 mounts in a mount namespace of its own" in capsys.readouterr().err


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class _SaidNoError(Exception):
    pass


def _no(*_: object, **__: object) -> None:
    raise _SaidNoError


def test_a_machine_that_is_not_fit_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "lacks", lambda _: ["needs root: sudo zombiescope lab run mount-storm"])
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
