"""What FlameScope does wrong with data like ours, each as a test: it lost samples, names and owners."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.made import Sample, Task, opened
from tests.helpers.recordings import SECOND, START_US

from zombiescope.query import flame, heatmap, svg
from zombiescope.query.selection import Filters, Selection
from zombiescope.store.reader import Recording

SWAPPER = Task(0, 0, "swapper/3")
NAPI = "[k]do_idle;[k]cpuidle_enter;[k]common_interrupt;[k]__do_softirq;[k]net_rx_action;[k]mlx5e_napi_poll"


def whole(recording: Recording, filters: Filters | None = None) -> Selection:
    return Selection(recording, START_US, START_US + 3 * SECOND, filters or Filters())


def names(selection: Selection) -> set[str]:
    tree = flame.fold(selection.stacks, selection.counts(), below_ratio=0)
    return {tree.name(node).name for node in range(1, len(tree.value))}


def test_the_last_sample_need_not_be_the_latest(tmp_path: Path) -> None:
    samples = [Sample(2 * SECOND + 900_000, "main", 0), Sample(100_000, "main", 1), Sample(50_000, "main", 2)]
    with opened(tmp_path, *samples) as recording:
        drawn = heatmap.subsecond(whole(recording), rows=10)
    assert drawn.total == 3
    assert drawn.values[2, 9] == 1


def test_softirq_work_on_an_idle_core_is_kept(tmp_path: Path) -> None:
    with opened(tmp_path, Sample(1, NAPI, 3, SWAPPER), Sample(2, "main", 0)) as recording:
        assert heatmap.subsecond(whole(recording)).total == 2
        assert "mlx5e_napi_poll" in names(whole(recording))


def test_digits_in_a_name_of_a_task_are_kept(tmp_path: Path) -> None:
    samples = [Sample(1, "a", task=Task(comm="python3")), Sample(2, "b", task=Task(8, 8, "kworker/3:1-mm"))]
    with opened(tmp_path, *samples) as recording:
        assert names(whole(recording, Filters(comms=("python3",)))) == {"a"}
        assert names(whole(recording, Filters(comms=("python",)))) == set()
        assert names(whole(recording, Filters(comms=("kworker/3:1-mm",)))) == {"b"}


def test_operator_names_are_whole(tmp_path: Path) -> None:
    operators = {"Ptr::operator->", "Vec::operator+", "std::operator<<", "operator()(int) const"}
    with opened(tmp_path, *(Sample(at, f"main;{name}") for at, name in enumerate(operators))) as recording:
        selection = whole(recording)
        assert names(selection) == operators | {"main"}
        drawn = svg.flamegraph(flame.fold(selection.stacks, selection.counts()), "lab")
    assert "Ptr::operator-&gt;" in drawn


def test_core_process_and_thread_are_kept(tmp_path: Path) -> None:
    samples = [Sample(1, "a", 0, Task(7, 8)), Sample(2, "b", 1, Task(7, 9)), Sample(3, "c", 1, Task(9, 9))]
    with opened(tmp_path, *samples) as recording:
        assert names(whole(recording, Filters(cpus=frozenset({1})))) == {"b", "c"}
        assert names(whole(recording, Filters(pids=frozenset({7})))) == {"a", "b"}
        assert names(whole(recording, Filters(tids=frozenset({9})))) == {"b", "c"}
