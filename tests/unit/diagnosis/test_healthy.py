"""Healthy nodes are quiet, at every width: what they do all day is no warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.healthy import LOADS, Load

WIDTHS = (16, 96, 192)


@pytest.mark.parametrize("cpus", WIDTHS)
@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.__name__)
def test_a_healthy_node_is_no_warning(load: Load, cpus: int, tmp_path: Path) -> None:
    found = load(cpus).diagnose(tmp_path)
    loud = [one for one in found.incidents if one.severity != "info"]
    said = [
        (one.severity, one.causes[0].pattern if one.causes else None, one.causes[0].summary if one.causes else "",
         [symptom.text for symptom in one.symptoms])
        for one in loud
    ]  # fmt: skip
    assert said == []
