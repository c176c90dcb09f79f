"""Job-hours lost are those of jobs that died, as a diagnosis writes them down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.recordings import START_US

from zombiescope.diagnosis.incident import Incident, JobFate
from zombiescope.diagnosis.report import document
from zombiescope.fleet.engines.local import LocalEngine
from zombiescope.fleet.gather import gather
from zombiescope.store import incident_file

SECOND = 1_000_000


def lost_s(tmp_path: Path, *jobs: JobFate) -> list[Any]:
    """Through incidents.json, as the doctor writes it and a fleet reads it."""
    node = tmp_path / "root/node=a"
    node.mkdir(parents=True)
    (node / "node.json").write_text('{"node": "a", "kernel": "6.1", "labels": {}}')
    one = Incident("x", START_US, START_US + 30 * SECOND, "closed", "critical", (), jobs=jobs)
    incident_file.write(node, [document.incident(one)], START_US)
    found = gather(str(tmp_path / "root"), tmp_path / "results", LocalEngine(1), None)
    rows = found.statistics.rows("select job_lost_s from incidents", [])
    found.statistics.close()
    return [row[0] for row in rows]


def test_the_jobs_that_died_count_with_all_that_they_ran(tmp_path: Path) -> None:
    died = [JobFate(name, "died", "", START_US, ran_s) for name, ran_s in (("a", 3600.0), ("b", 7200.0), ("c", None))]
    others = [JobFate("d", "failed by itself", "", START_US, 9e4), JobFate("e", "survived", "", None)]
    assert lost_s(tmp_path, *died, *others) == [10_800.0]


def test_where_none_died_it_is_how_long_they_were_held_up(tmp_path: Path) -> None:
    assert lost_s(tmp_path, JobFate("e", "survived", "", None, 50.0)) == [pytest.approx(30.0)]
