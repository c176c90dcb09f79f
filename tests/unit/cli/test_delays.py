"""`zombiescope delays`: its keys, its filters, and a recording without a snapshot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.helpers.cli import Cli
from tests.helpers.made import SECOND, START_US, Node, write_segment
from tests.helpers.schedule import ran, waited, watched

AT = START_US + SECOND


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """kubelet ran for 0.9 s, of which train.py waited 0.8 s."""
    node = Node()
    kubelet, train = node.task(1893, "kubelet", unit="kubelet.service"), node.task(4711, "train.py")
    stack = node.stack([node.frame("seq_read"), node.frame("memcg_numa_stat_show")])
    watched(node, 0, AT, AT + 7 * SECOND)
    ran(node, 0, kubelet, AT, AT + 900_000)
    waited(node, 0, train, AT + 100_000, AT + 900_000)
    for turn in range(20):
        node.add("samples", time=AT + 110_000 + turn * 10_000, cpu=0, task=kubelet, stack=stack)
    write_segment(tmp_path, node.take())
    return tmp_path


def test_it_has_the_keys_that_it_promises(place: Path, cli: Cli) -> None:
    said = cli("delays", str(place), "--json").document
    assert {"delays", "reach_s", "watched_cpus"} <= said.keys()
    (one,) = said["delays"]
    assert {"victim", "by", "cpu", "from", "to", "seconds", "waits"} <= one.keys()
    assert {"pid", "tid", "comm", "unit", "softirq", "queue"} <= one["victim"].keys()
    assert (one["by"]["unit"], one["seconds"]) == ("kubelet.service", 0.8)
    assert one["frames"] == ["seq_read", "memcg_numa_stat_show"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], 1), (["--pid", "4711"], 1), (["--pid", "1893"], 1), (["--pid", "9"], 0), (["--cpu", "1"], 0),
        (["--comm", "kube*"], 1), (["--comm", "x"], 0), (["--least", "2s"], 0), (["--least", "0s"], 1),
    ],
)  # fmt: skip
def test_filters_keep_what_they_name(place: Path, cli: Cli, arguments: list[str], expected: int) -> None:
    assert len(cli("delays", str(place), "--json", *arguments).document["delays"]) == expected


def test_the_longest_is_told_with_where_its_culprit_was(place: Path, cli: Cli) -> None:
    out = cli("delays", str(place)).out
    assert "memcg_numa_stat_show" in out
    assert "kubelet.service" in out
    # From when to when the longest wait was: as exactly as it was measured.
    assert re.search(r"\d\d:\d\d:\d\d\.100 – \d\d:\d\d:\d\d\.900", out)


def test_without_a_snapshot_it_says_so_and_finds_nothing(tmp_path: Path, cli: Cli) -> None:
    node = Node()
    node.add("cores", time=AT, interval_us=SECOND, cpu=0)
    write_segment(tmp_path, node.take())
    said = cli("delays", str(tmp_path))
    assert (said.code, said.out) == (0, "")
    assert "snapshot" in said.err
    assert cli("delays", str(tmp_path), "--json").document["reach_s"] is None
