"""What `zombiescope.open` gives: a recording that says what it is, and answers as the commands do."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.helpers.cli import Cli

import zombiescope
from zombiescope.base.errors import QuestionError, UserError
from zombiescope.notebook import keywords
from zombiescope.store.schema import BY_NAME


@pytest.fixture(scope="module")
def recording(demo: Path) -> zombiescope.Recording:
    return zombiescope.open(demo / "rec")


def test_it_says_what_it_is(recording: zombiescope.Recording) -> None:
    assert repr(recording).startswith(
        "<Recording of ip-10-1-39-7, 2025-04-01 02:53:01 – 03:02:22 UTC, 96 cores, kernel 5"
    )
    assert "279,360 samples" in recording._repr_html_()


def test_a_name_that_somebody_chose_is_no_markup(recording: zombiescope.Recording) -> None:
    before = recording.name
    try:
        recording.name = "<script>alert(1)</script>"
        assert "<script>" not in recording._repr_html_()
    finally:
        recording.name = before


def test_tables_are_read_by_name(recording: zombiescope.Recording) -> None:
    tables = recording.tables
    assert set(tables) == set(BY_NAME)
    assert tables["cores"].num_rows == tables.cores.num_rows == tables.rows["cores"] == 2880
    assert "system_ms" in repr(tables)
    assert "<table" in tables._repr_html_()
    assert "cores" in dir(tables)
    with pytest.raises(AttributeError, match="there are samples, "):
        _ = tables.core


def test_a_diagnosis_is_that_of_the_command(recording: zombiescope.Recording, demo: Path) -> None:
    found = recording.diagnose(last="30s")
    said = Cli(demo)("diagnose", "rec", "--last", "30s", "--json").document
    assert json.loads(json.dumps(found.incidents)) == said["incidents"]
    assert "core 39 starved for 6 s" in repr(found)
    assert "core 39 starved for 6 s" in found._repr_html_()
    assert found.markdown().startswith("# ")
    (first,) = recording.diagnose(last="30s", incident=found.incidents[0]["id"][:5]).incidents
    assert first["id"] == found.incidents[0]["id"]
    with pytest.raises(UserError, match="no incident"):
        recording.diagnose(last="30s", incident="zzz")


def test_a_flame_graph_is_that_of_the_command(recording: zombiescope.Recording, demo: Path, tmp_path: Path) -> None:
    flames = recording.flamegraph(start="03:02:06", end="03:02:13", cpu=39)
    said = Cli(demo)("flamegraph", "rec", "--from", "03:02:06", "--to", "03:02:13", "--cpu", "39", "--json").document
    assert (flames.total, flames.root) == (said["total"], said["root"])
    assert "mem_cgroup_nr_lru_pages" in repr(flames)
    assert "<svg" in flames._repr_svg_()
    assert flames.save(tmp_path / "x.svg").read_text() == flames.svg()
    with pytest.raises(QuestionError, match=r"end in \.svg or \.txt"):
        flames.save(tmp_path / "x.png")


def test_a_heat_map_is_that_of_the_command(recording: zombiescope.Recording, demo: Path) -> None:
    heat = recording.heatmap(last=30, by="core")
    said = Cli(demo)("heatmap", "rec", "--last", "30s", "--by", "core", "--json").document
    assert heat.values.tolist() == said["values"]
    assert heat.start == said["start"]
    assert "<svg" in heat._repr_svg_()


def test_files_are_those_of_one_table(recording: zombiescope.Recording) -> None:
    pandas = pytest.importorskip("pandas")
    assert len(pandas.read_parquet(recording.files("cores"))) == recording.tables.rows["cores"]
    with pytest.raises(KeyError, match="there is no table core;"):
        recording.files("core")


def test_times_are_taken_as_people_have_them() -> None:
    moment = datetime(2025, 4, 1, 3, 2, 6, tzinfo=UTC)
    asked = keywords.window(timedelta(minutes=5), None, moment, None)
    assert (asked.last, asked.to) == ("300s", "2025-04-01T03:02:06+00:00")
    assert keywords.window(None, 1743476526.5, None, None).from_ == "1743476526.500000"
    assert keywords.filters({"cpu": 3, "comm": ["a", "b*"], "pid": 7}).cpu == ("3",)
    with pytest.raises(QuestionError, match="there is no filter 'cpus'; there are cpu, pid"):
        keywords.filters({"cpus": 3})


def test_without_a_place_it_is_that_of_this_machine(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZOMBIESCOPE_DIR", str(demo / "rec"))
    with zombiescope.open() as recording:
        assert recording.name == "ip-10-1-39-7"
