"""What bears the laboratory's name is found; what only looks like it is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.lab import leftovers


def test_units_of_a_scenario_are_found_and_stopped_before_their_file_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, others = "zombiescope-lab-zombie-unit-agent.service", "zombiescope.service"
    for name in (mine, others, "zombiescope-lab-zombie-unit-agent.service.d"):
        (tmp_path / name).touch()
    said: list[tuple[str, ...]] = []

    def systemctl(*words: str) -> None:
        said.append((*words, str((tmp_path / mine).exists())))

    monkeypatch.setattr(leftovers, "UNITS", tmp_path)
    monkeypatch.setattr(leftovers, "_systemctl", systemctl)
    found = leftovers.find("zombie-unit")
    assert [unit.name for unit in found.units] == [mine]
    assert leftovers.find("zombie").units == found.units, "its name begins so; the ids of scenarios are apart"
    assert not leftovers.find("mount-storm").units
    assert leftovers.remove(leftovers.Leftovers((), (), (), found.units)) == []
    assert said == [("stop", mine, "True"), ("daemon-reload", "False"), ("reset-failed", mine, "False")]
    assert (tmp_path / others).exists()
