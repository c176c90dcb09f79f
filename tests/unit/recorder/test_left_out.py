"""Cores that somebody does not want to be interrupted: no stacks are taken there, and that is said."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.helpers.cli import Cli
from tests.helpers.scenes import Scene
from tests.helpers.wide import WideNode

from zombiescope._native import KernelSymbols
from zombiescope.kernel import perf_event
from zombiescope.kernel.cpu import format_list, parse_list
from zombiescope.recorder import rings
from zombiescope.recorder.config import RecorderConfig
from zombiescope.recorder.cores import Cores
from zombiescope.recorder.node import describe, this_host
from zombiescope.recorder.online import left_out
from zombiescope.recorder.rings import PerfRings
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.tick import Tick
from zombiescope.store import schema
from zombiescope.store.batch import Batch

SECOND = 1_000_000


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Eight cores, of which 2 and 3 are isolated and 6 and 7 run without ticks."""
    place = tmp_path / "sys/devices/system/cpu"
    place.mkdir(parents=True)
    for name, text in (("online", "0-7"), ("possible", "0-7"), ("isolated", "2-3"), ("nohz_full", "6-7")):
        (place / name).write_text(text + "\n")
    (tmp_path / "proc").mkdir()
    spend(tmp_path, 0)
    return f"{tmp_path}/"


def spend(root: Path, system: int) -> None:
    lines = [f"cpu{cpu} 0 0 {system} 0 0 0 0 0 0 0" for cpu in range(8)]
    (root / "proc/stat").write_text("\n".join(["cpu 0 0 0 0 0 0 0 0 0 0", *lines, "ctxt 1", "processes 1", ""]))


@pytest.mark.parametrize(
    ("wanted", "cores"), [("", set()), ("isolated", {2, 3, 6, 7}), ("1,4-5", {1, 4, 5}), ("96-97", {96, 97})]
)
def test_which_cores(root: str, wanted: str, cores: set[int]) -> None:
    assert left_out(wanted, root) == cores


def test_a_kernel_without_the_lists_isolates_nothing(tmp_path: Path) -> None:
    assert left_out("isolated", f"{tmp_path}/") == frozenset()


def test_the_description_of_the_node_says_it(root: str) -> None:
    config = RecorderConfig(dir="/nowhere", node="lab", leave_out_cores="isolated")
    cpus = describe(config, this_host(root), tuple(range(8)), 8, {}, root)["cpus"]
    assert (cpus["isolated"], cpus["nohz_full"], cpus["left_out"]) == ([2, 3], [6, 7], [2, 3, 6, 7])


def test_the_time_of_such_a_core_is_written_and_judged_by_nobody(root: str) -> None:
    batch = Batch()
    cores = Cores(batch, Sources(), 99, root, frozenset({2, 3}))
    cores.tick(Tick(0, SECOND, SECOND))
    spend(Path(root), 100)
    tick = Tick(SECOND * 1000, 2 * SECOND, SECOND, sampled=dict.fromkeys((0, 1, 4, 5), (99, 0, 10000000, 0)))
    cores.tick(tick)
    assert [core.cpu for core in tick.times] == [0, 1, 4, 5, 6, 7]
    rows = [dict(zip(schema.CORES.names, row, strict=True)) for row in batch._rows[schema.CORES.number]]
    assert len(rows) == 8
    (isolated,) = [row for row in rows if row["cpu"] == 2]
    assert (isolated["system_ms"], isolated["samples"], isolated["expected_samples"]) == (1000, None, None)
    assert isolated["max_gap_us"] is None


@pytest.mark.parametrize("apart", [False, True])
def test_a_core_that_polls_is_lost_unless_it_was_left_out(tmp_path: Path, apart: bool) -> None:
    # GIVEN a core that the kernel holds all the time, without a sample
    scene = Scene(cpus=16).vmstat().mode(5, system=1.0, idle=0.0, idle_samples=0)
    if apart:
        scene.node["cpus"] = {"online": list(range(16)), "possible": 16, "left_out": [5]}
    found = scene.diagnose(tmp_path)
    assert {one.cpu for incident in found.incidents for one in incident.symptoms} == (set() if apart else {5})


def test_info_says_which_cores_were_left_out(tmp_path: Path) -> None:
    node = WideNode(8, seconds=4).training()
    node.node["cpus"] = {"online": list(range(8)), "possible": 8, "left_out": [2, 3, 6]}
    node.write(tmp_path)
    cli = Cli(tmp_path)
    assert "8; 2-3,6 left out of sampling" in cli("info", str(tmp_path)).out
    assert cli("info", str(tmp_path), "--json").document["left_out"] == [2, 3, 6]


@pytest.mark.parametrize("wrong", ["all", "3-", "1;2", "-1", "0x3"])
def test_a_list_that_is_none_is_refused(tmp_path: Path, wrong: str) -> None:
    done = Cli(tmp_path)("record", str(tmp_path), "--for", "1s", f"--leave-out-cores={wrong}")
    assert done.code == 2
    assert "is not a list of cores" in " ".join(done.err.split())


@pytest.mark.parametrize("text", ["", "0", "0-3,8", "1,3,5", "0-191"])
def test_a_list_is_printed_as_the_kernel_prints_it(text: str) -> None:
    assert format_list(parse_list(text.encode())) == text


def test_the_kernel_is_asked_on_a_core_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Number 0 may be offline, and one that is left out is not to be touched."""
    asked = []

    def probe(cpu: int, clock: perf_event.Clock) -> perf_event.Features:
        asked.append(cpu)
        raise OSError(errno.ENODEV, "no such core")

    monkeypatch.setattr(perf_event, "probe", probe)
    monkeypatch.setattr(rings, "load_kernel_symbols", lambda *_: KernelSymbols())
    for apart, online in ((frozenset[int](), (4, 5)), (frozenset({4}), (4, 5)), (frozenset({4, 5}), (4, 5))):
        PerfRings(perf_event.Clock(), 8, Sources(), host_pids=True, now_us=0, left_out=apart, online=online)
    assert asked == [4, 5, 4]


def test_none_leaves_nothing_out(root: str) -> None:
    assert left_out("none", root) == frozenset()
