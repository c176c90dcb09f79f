"""The same words mean the same in every command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.helpers.cli import Cli
from tests.helpers.recordings import write_recording

from zombiescope.kernel.log_formats import FORMATS
from zombiescope.query import events


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("consistent")
    write_recording(made / "rec", seconds=20)
    return made


@pytest.mark.parametrize("command", ["cores", "events", "heatmap", "flamegraph", "stacks", "containers", "history"])
def test_an_empty_window_says_what_is_recorded(command: str, home: Path) -> None:
    done = Cli(home)(command, "rec", "--from", "2001-01-01T00:00", "--to", "2001-01-01T00:01")
    assert done.code == 0
    assert "recorded is 2025-10-09 10:53:20 – 10:53:40 CEST" in done.err
    assert "Traceback" not in done.err


def test_a_start_after_the_end_says_when_that_is(home: Path) -> None:
    done = Cli(home)("stacks", "rec", "--from", "2031-01-01T00:00")
    assert done.code == 2
    assert "it holds 2025-10-09" in done.err


def test_a_kind_that_does_not_exist_is_refused(home: Path) -> None:
    done = Cli(home)("events", "rec", "--kind", "nic_rest")
    assert done.code == 2
    assert "--kind: there is no kind of event called 'nic_rest'; did you mean nic_reset" in done.err
    assert Cli(home)("events", "rec", "--kind", "nic_reset").code == 0


def test_every_kind_that_the_kernels_log_has_is_known() -> None:
    assert {one.kind for one in FORMATS} <= events.known_kinds()


def test_an_incident_that_does_not_exist_is_named(home: Path) -> None:
    done = Cli(home)("diagnose", "rec", "--incident", "zzzz")
    assert done.code == 1
    assert "no incident, or more than one, has an id that starts with zzzz" in done.err
    assert Cli(home)("diagnose", "rec", "--incident", "a", "--pod", "b").code == 2


def test_a_is_the_baseline(home: Path) -> None:
    done = Cli(home)("diff", "+0s..+5s", "+5s..+10s", "--in", "rec")
    first, second = done.out.splitlines()[:2]
    assert first.startswith("A  ")
    assert first.endswith("(baseline)")
    assert second.startswith("B  ")


@pytest.mark.parametrize("command", ["cores rec", "stacks rec", "diff +0s..+5s +5s..+10s --in rec", "info rec"])
def test_a_narrow_terminal_cuts_no_number(command: str, home: Path) -> None:
    wide = re.findall(r"\d+(?:[.,:]\d+)*%?", Cli(home)(*command.split(), COLUMNS="200").out)
    assert wide
    for columns in ("20", "40", "60"):
        narrow = "".join(Cli(home)(*command.split(), COLUMNS=columns).out.split())
        assert [number for number in wide if number not in narrow] == []
