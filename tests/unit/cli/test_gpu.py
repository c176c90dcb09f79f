"""`zombiescope gpu`: the table, JSON and CSV say the same, and an empty window says why it is empty."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.cli import Cli
from tests.helpers.made import Node, write_segment
from tests.unit.query.test_gpu_account import SECONDS, Trainer, at

KEYS = {"data", "core", "collective", "storage", "throttled", "stopped", "broken", "unknown", "host", "unused"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = Trainer(gpus=2).use(0, {0: 90, 15: 0, 25: 90}).use(1, {0: 50}).on(0, 70).on(1, 71).rank(70, 0).rank(71, 1)
    made.does(70, "step", 0, 15, "R").does(70, "data", 15, 25).does(71, "collective", 0, SECONDS)
    write_segment(tmp_path / "rec", made.node.tables)
    return tmp_path


@pytest.mark.parametrize("by", ["job", "process", "gpu"])
def test_what_each_line_waited_for_and_was_busy_is_its_wall_time(by: str, home: Path) -> None:
    found = Cli(home)("gpu", "rec", "--by", by, "--json").document
    assert found["schema"] == "zombiescope.gpu/1"
    assert found["rows"]
    for row in found["rows"]:
        assert row["waited"].keys() == KEYS
        assert row["busy_s"] + sum(row["waited"].values()) == pytest.approx(row["wall_s"], rel=0.001)
    assert sum(row["wall_s"] for row in found["rows"]) == pytest.approx(2 * SECONDS)


def test_the_terminal_says_it_in_words(home: Path) -> None:
    done = Cli(home)("gpu", "rec", "--by", "process")
    assert done.code == 0
    assert "rank 1, pid 71" in done.out
    assert "GPU 0 idle for 10 s" in done.out


def test_the_last_line_of_the_table_adds_the_causes_up(home: Path) -> None:
    whole = next(line for line in Cli(home)("gpu", "rec").out.splitlines() if line.startswith("slurm/7"))
    (total,) = (line for line in Cli(home)("gpu", "rec", "--by", "process").out.splitlines() if "(all)" in line)
    assert total.split()[1:6] == whole.split()[2:7]
    assert "(all)" not in Cli(home)("gpu", "rec").out


def test_csv_has_a_line_for_each_row(home: Path) -> None:
    lines = Cli(home)("gpu", "rec", "--by", "process", "--csv").out.splitlines()
    assert len(lines) == 3
    assert "waited.collective" in lines[0].split(",")


def test_a_node_without_gpus_says_so(tmp_path: Path) -> None:
    node = Node()
    node.core(at(1), 0)
    write_segment(tmp_path / "rec", node.tables)
    done = Cli(tmp_path)("gpu", "rec")
    assert (done.code, done.err) == (0, "zombiescope: no GPU is known in this window: no driver was loaded\n")
