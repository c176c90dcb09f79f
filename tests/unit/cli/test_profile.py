"""heatmap, flamegraph and stacks as a person or a script meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.helpers import made
from tests.helpers.cli import Cli
from tests.helpers.recordings import SECOND, WALK, Written, write_recording


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A minute of four cores; kubelet holds the last of them in the kernel from +30s to +36s."""
    return write_recording(tmp_path_factory.mktemp("rec") / "flight", cpus=4, seconds=60)


def names(node: dict[str, Any]) -> set[str]:
    return {node["name"]}.union(*(names(child) for child in node["children"]))


def test_the_three_commands_count_the_same_samples(cli: Cli, written: Written) -> None:
    place = str(written.dir)
    heat, cores = cli("heatmap", place, "--json").document, cli("heatmap", place, "--by", "core", "--json").document
    assert (heat["columns"], heat["rows"], heat["start"]) == (60, 50, written.start_us / 1e6)
    assert (cores["columns"], cores["cores"]) == (60, [0, 1, 2, 3])
    totals = {sum(map(sum, heat["values"])), sum(map(sum, cores["values"]))}
    totals |= {cli("flamegraph", place, "--json").document["total"], cli("stacks", place, "--json").document["total"]}
    assert totals == {written.samples}


def test_the_bad_seconds_of_the_lost_core_name_the_function(cli: Cli, written: Written) -> None:
    bad = ("--from", "+30s", "--to", "+36s", "--cpu", "3")
    flame = cli("flamegraph", str(written.dir), *bad, "--json").document
    assert flame["total"] == 6 * 99
    assert set(WALK) <= names(flame["root"])
    hottest = cli("stacks", str(written.dir), *bad, "--json").document["functions"][0]
    assert (hottest["name"], hottest["self_ratio"]) == ("mem_cgroup_nr_lru_pages", 1.0)


def test_every_filter_narrows(cli: Cli, written: Written) -> None:
    def total(*options: str) -> int:
        return int(cli("stacks", str(written.dir), "--json", *options).document["total"])

    by_comm = total("--comm", "kubelet")
    assert 0 < by_comm < written.samples
    assert total("--pid", "1201") == total("--tid", "1201") == total("--unit", "kubelet.service") == by_comm
    assert total("--kernel") + total("--user") == written.samples
    assert 0 < total("--container", "3f1c3f") < written.samples
    assert total("--match", "^memcg_numa_stat_show$") == 6 * 99
    assert total("--cpu", "0-2", "--cpu", "3") == written.samples
    assert total("--comm", "nobody") == 0


def test_a_difference_names_what_came_and_what_vanished(cli: Cli, written: Written) -> None:
    options = ("--comm", "kubelet", "--cpu", "3", "--from", "+30s", "--to", "+36s", "--against", "+0s..+20s")
    document = cli("flamegraph", str(written.dir), *options, "--prune", "0", "--json").document
    main = next(child for child in document["root"]["children"] if child["name"] == "main")
    deltas = {child["name"]: child["delta"] for child in main["children"]}
    assert deltas["kubelet::housekeeping"] == document["total"] == 6 * 99
    assert min(deltas.values()) < 0
    assert sum(deltas.values()) == pytest.approx(0, abs=0.01 * len(deltas))
    assert document["against"]["total"] > 0


def test_no_graph_is_a_megabyte_unless_it_is_asked_for(cli: Cli, tmp_path: Path) -> None:
    """Wide enough to be seen, and too many: 1,500 paths of eight long names."""
    stacks = [";".join(f"{'x' * 90}{path}_{depth}" for depth in range(8)) for path in range(1500)]
    made.write(tmp_path / "wide", [made.Sample(at, stack) for at, stack in enumerate(stacks)])
    place = str(tmp_path / "wide")
    small = cli("flamegraph", place, "--json", "-o", str(tmp_path / "x.svg"))
    assert 800_000 < len(small.out) < 1_000_000
    assert 700_000 < (tmp_path / "x.svg").stat().st_size < 1_000_000
    assert small.document["pruned"]["branches"] > 1000
    assert small.document["total"] == 1500
    assert len(cli("flamegraph", place, "--json", "--prune", "0.0005").out) > 2_000_000


def test_a_picture_says_how_long_its_columns_are(cli: Cli, written: Written) -> None:
    assert "a column is" not in cli("heatmap", str(written.dir)).out
    assert cli("heatmap", str(written.dir), COLUMNS="60").out.rstrip().endswith("; a column is 2 s")


def test_what_is_pruned_is_said(cli: Cli, written: Written) -> None:
    pruned = cli("flamegraph", str(written.dir), "--prune", "0.01", "--json").document
    assert pruned["pruned"]["branches"] > 0
    assert pruned["pruned"]["below_ratio"] == 0.01
    whole = cli("flamegraph", str(written.dir), "--prune", "0", "--json").document
    assert whole["pruned"] == {"branches": 0, "samples": 0, "below_ratio": 0.0}
    assert "branches under" in cli("flamegraph", str(written.dir)).out


@pytest.mark.parametrize("name", ["heatmap", "flamegraph"])
def test_a_picture_goes_where_it_is_told(cli: Cli, written: Written, tmp_path: Path, name: str) -> None:
    for ending, start in (("svg", "<svg"), ("html", "<!doctype html>"), ("txt", "lab  2025-10-09")):
        picture = tmp_path / f"picture.{ending}"
        done = cli(name, str(written.dir), "-o", str(picture), "--last", "20s")
        assert (done.code, done.out) == (0, "")
        assert str(picture) in done.err
        text = picture.read_text()
        assert text.startswith(start)
        if ending == "svg":
            ElementTree.fromstring(text)
        if ending == "txt":
            assert max(map(len, text.splitlines())) <= 80
    assert sorted(path.name for path in tmp_path.glob("*picture*")) == ["picture.html", "picture.svg", "picture.txt"]


def test_a_picture_and_a_document_at_once(cli: Cli, written: Written, tmp_path: Path) -> None:
    done = cli("heatmap", str(written.dir), "--json", "-o", str(tmp_path / "a.svg"))
    assert done.document["columns"] == 60
    assert (tmp_path / "a.svg").exists()


def test_a_place_that_cannot_be_written_is_one_line(cli: Cli, written: Written, tmp_path: Path) -> None:
    done = cli("heatmap", str(written.dir), "-o", str(tmp_path / "nowhere" / "a.svg"))
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "could not be written" in done.err


@pytest.mark.parametrize("name", ["heatmap", "flamegraph", "stacks"])
def test_nothing_selected_is_an_answer_and_said(cli: Cli, written: Written, name: str) -> None:
    done = cli(name, str(written.dir), "--comm", "nobody")
    assert done.code == 0
    assert "no samples with comm nobody" in done.err
    far = cli(name, str(written.dir), "--from", "+9h", "--to", "+10h", "--json")
    assert (far.code, far.document["schema"]) == (0, f"zombiescope.{name}/1")
    early = cli(name, str(written.dir), "--from", "1000000000", "--json")
    assert early.code == 0


def test_parquet_gives_the_same_answer_as_the_log(cli: Cli, tmp_path: Path) -> None:
    written = write_recording(tmp_path / "rec", cpus=4, seconds=40)
    asked = [("heatmap",), ("flamegraph", "--prune", "0"), ("stacks", "--kernel"), ("heatmap", "--comm", "kubelet")]
    before = [cli(name, str(written.dir), *rest, "--json").document for name, *rest in asked]
    assert cli("compact", str(written.dir)).code == 0
    after = [cli(name, str(written.dir), *rest, "--json").document for name, *rest in asked]
    for old, new in zip(before, after, strict=True):
        old.pop("stacks", None), new.pop("stacks", None)  # stacks of equal counts may come in another order
        assert old == new


def test_a_window_inside_a_second(cli: Cli, written: Written) -> None:
    start = written.start_us / 1e6 + 30.5
    document = cli("heatmap", str(written.dir), "--from", str(start), "--to", str(start + 0.25), "--json").document
    assert (document["columns"], document["start"]) == (1, start - 0.5)
    assert sum(document["values"][0][:25]) == sum(document["values"][0][38:]) == 0
    assert document["total"] > 0
    assert document["column_s"] * 1e6 == SECOND
