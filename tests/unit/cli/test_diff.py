"""diff: two windows, or two recordings, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.boxes import write_boxes
from tests.helpers.cli import Cli
from tests.helpers.recordings import Written, write_recording


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A minute of two cores; kubelet holds the last of them in the kernel from +30s to +36s."""
    return write_recording(tmp_path_factory.mktemp("rec") / "bad")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_recording(tmp_path_factory.mktemp("rec") / "good", node="other", incident=False, dying=12, seed=8)


def by_name(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(row for row in rows if row["name"] == name)


def test_two_windows_of_one_recording(cli: Cli, bad: Written) -> None:
    found = cli("diff", "+0s..+20s", "+30s..+36s", "--in", str(bad.dir), "--json").document
    kubelet = found["units"][0]
    assert (kubelet["name"], kubelet["kind"]) == ("kubelet.service", "unit")
    assert kubelet["cores"]["delta"] > 0.9  # the whole core that it held
    walk = found["functions"][0]
    assert walk["name"] == "mem_cgroup_nr_lru_pages"
    assert walk["self_ratio"]["a"] == 0
    lost = found["cores"]["cores"][1]["longest_saturation_s"]
    assert (lost["a"], lost["b"]) == (0, pytest.approx(6, abs=1))


def test_two_recordings_count_every_sample_of_both(cli: Cli, good: Written, bad: Written) -> None:
    found = cli("diff", str(good.dir), str(bad.dir), "--json", "--top", "1000").document
    assert (found["a"]["samples"], found["b"]["samples"]) == (good.samples, bad.samples)
    assert (found["a"]["node"], found["b"]["node"]) == ("other", "lab")
    for side in ("a", "b"):
        assert sum(row["self_ratio"][side] for row in found["functions"]) == pytest.approx(1)
        assert sum(row["ratio"][side] for row in found["units"]) == pytest.approx(1)
    assert found["cgroups"]["a"]["dying"] < 100 < found["cgroups"]["b"]["dying"]


def test_a_recording_against_itself_shows_no_change(cli: Cli, bad: Written) -> None:
    found = cli("diff", str(bad.dir), str(bad.dir), "--json").document
    assert {row["self_ratio"]["delta"] for row in found["functions"]} == {0}
    assert "no significant change" in cli("diff", str(bad.dir), str(bad.dir)).out


def test_filters_hold_on_both_sides(cli: Cli, good: Written, bad: Written) -> None:
    found = cli("diff", str(good.dir), str(bad.dir), "--comm", "kubelet", "--json").document
    assert {row["name"] for row in found["units"]} == {"kubelet.service"}


def test_the_picture_of_two_recordings_shows_what_came(cli: Cli, good: Written, bad: Written, tmp_path: Path) -> None:
    for name in ("diff.svg", "diff.html", "diff.txt"):
        done = cli("diff", str(good.dir), f"{bad.dir}@+30s..+36s", "-o", str(tmp_path / name))
        assert done.code == 0, done.err
    assert "mem_cgroup_nr_lru_pages" in (tmp_path / "diff.svg").read_text()
    against = cli("flamegraph", str(bad.dir), "--against", str(good.dir), "--json").document
    assert (against["total"], against["against"]["total"]) == (bad.samples, good.samples)
    assert against["root"]["base"] == good.samples


def test_a_person_reads_who_and_where(cli: Cli, good: Written, bad: Written) -> None:
    text = cli("diff", str(good.dir), f"{bad.dir}@+30s..+36s").out
    assert "kubelet.service" in text
    assert "mem_cgroup_nr_lru_pages" in text
    assert "new" in text
    assert "core 1 for 6.0 s" in text


@pytest.mark.parametrize(
    ("sides", "says"),
    [
        (("nowhere", "+0s..+1s"), "is neither a recording nor a window"),
        (("+0s..", "+0s..+1s"), "is not FROM..TO"),
        (("+5s..+1s", "+0s..+1s"), "ends before it starts"),
        (("+0s..+1s", "+90000s..+90001s"), "is outside of the recording"),
        (("then..now", "+0s..+1s"), "is not a time"),
    ],
)
def test_what_is_neither_is_said_in_one_line(cli: Cli, bad: Written, sides: tuple[str, str], says: str) -> None:
    done = cli("diff", *sides, "--in", str(bad.dir))
    assert done.code == 2
    assert says in done.err
    assert len(done.err.splitlines()) == 1


def test_containers_are_compared_by_name(cli: Cli, tmp_path: Path) -> None:
    directory = str(write_boxes(tmp_path / "boxes"))
    found = cli("diff", "+0s..+20s", "+30s..+50s", "--in", directory, "--json").document
    assert {(row["name"], row["kind"]) for row in found["units"]} == {
        ("ml/train-0/main", "container"), ("web", "container"), ("kubelet.service", "unit")
    }  # fmt: skip
