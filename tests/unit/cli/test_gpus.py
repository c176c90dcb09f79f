"""What a person reads about GPUs: `cores --gpu`, `info` and `top`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.cli import Cli
from tests.helpers.made import SECOND, START_US, Node, write_segment

from zombiescope.cli.top.gpus import gpu_lines
from zombiescope.query.recent import GpuTick, Recent

HOSTILE = "evil\x1b[31m\n[bold]name"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    node = Node()
    node.core(START_US + SECOND, 0, user=10)
    for gpu in range(2):
        node.gpu(START_US + SECOND, gpu, state="ok" if gpu == 0 else "reset_required", remap_failed=gpu)
    for second in range(1, 31):
        heat = {"temperature_c": 91, "hw_thermal_ns": 400_000_000} if second % 10 == 0 else {}
        node.gpu_second(START_US + second * SECOND, 0, 97, power_w=690, **heat)
    node.gpu_process(START_US + SECOND, 0, 31917, HOSTILE, memory_bytes=1 << 33, pod="0a1b", container="ab12" * 16)
    place = tmp_path_factory.mktemp("gpus") / "rec"
    write_segment(place, node.tables)
    return place


def test_a_table_of_gpus(cli: Cli, place: Path) -> None:
    text = cli("cores", str(place), "--gpu").out
    assert "NVIDIA H200" in text
    assert "97%" in text
    assert "690 W" in text
    assert "hw thermal 1.2 s" in text
    assert "GPU 1 is reset required" in text
    assert "GPU 1 could not remap a row of its memory: it must be replaced" in text
    assert "pid 31917, container ab12ab12ab12, pod 0a1b" in text
    assert "\x1b" not in text


def test_the_same_as_a_document(cli: Cli, place: Path) -> None:
    first, second = cli("cores", str(place), "--gpu", "--json").document["gpus"]
    assert (first["utilisation"], first["temperature_c"], first["state"]) == (97, 91, "ok")
    assert (second["utilisation"], second["state"], second["seconds"]) == (None, "reset_required", 0)
    assert cli("cores", str(place), "--json").document["gpus"] is None, "not asked for"


def test_info_counts_equal_ones_together(cli: Cli, place: Path) -> None:
    assert "2 x NVIDIA H200" in cli("info", str(place)).out
    assert cli("info", str(place), "--json").document["gpus"] == ["NVIDIA H200"] * 2


def test_a_node_without_a_gpu_says_so(cli: Cli, tmp_path: Path) -> None:
    node = Node()
    node.core(START_US + SECOND, 0, user=10)
    write_segment(tmp_path / "rec", node.tables)
    done = cli("cores", str(tmp_path / "rec"), "--gpu")
    assert "no driver was loaded" in done.err
    assert "none" in cli("info", str(tmp_path / "rec")).out


def recent(gpus: int) -> Recent:
    made = Recent()
    for gpu in range(gpus):
        made._gpus[gpu] = {
            START_US + second * SECOND: GpuTick(START_US + second * SECOND, 2 if gpu == 5 else 97, 690, 61)
            for second in range(30)
        }
        made.gpu_states[gpu] = ("NVIDIA H200", "lost" if gpu == 3 else "ok")
    return made


def test_top_shows_a_strip_of_each_where_there_are_few() -> None:
    lines = [line.plain for line in gpu_lines(recent(2), 80)]
    assert [line.split()[:2] for line in lines] == [["GPU", "0"], ["GPU", "1"]]
    assert "97%  690 W  61 °C" in lines[0]
    assert all(len(line) <= 80 for line in lines)
    assert gpu_lines(Recent(), 80) == []


def test_top_shows_all_of_many_and_the_idlest() -> None:
    every, idlest = [line.plain for line in gpu_lines(recent(16), 80)]
    assert every.startswith(" GPUs")
    assert "GPU 3 lost" in every
    assert every.count("▇") + every.count("█") == 15
    assert idlest.startswith(" GPU 5")
    assert "2%" in idlest
