# ruff: noqa: E501 - lines that perf prints are kept whole
"""What FlameScope gets wrong in perf script text, from the file to the pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.imports.session import Options, Session, Silence
from zombiescope.query.heatmap import subsecond
from zombiescope.query.selection import Filters, Selection
from zombiescope.store.reader import Recording, open_recording

START = 1_775_038_996_000_000
IDLE = "\tffffffff81000001 pv_native_safe_halt+0x1 ([kernel.kallsyms])\n\tffffffff81000002 do_idle+0x1 ([kernel.kallsyms])\n"
SOFTIRQ = "\tffffffffc0000001 mlx5e_napi_poll+0x1 ([mlx5_core])\n\tffffffff81000003 net_rx_action+0x9 ([kernel.kallsyms])\n\tffffffff81000004 __do_softirq+0x9 ([kernel.kallsyms])\n"
WORK = "\t            1234 main+0x4 (/bin/app)\n"


def imported(tmp_path: Path, *samples: tuple[str, float, str]) -> Recording:
    """Samples as (comm pid/tid [cpu], seconds, stack)."""
    lines = (f"{who} {START / 1e6 + at:.6f}: 1 cycles: \n{stack}\n" for who, at, stack in samples)
    text = tmp_path / "perf.txt"
    text.write_text("".join(lines))
    Session(tmp_path / "rec", Options(), Silence()).run([str(text)])
    return open_recording(tmp_path / "rec")


def everything(recording: Recording, filters: Filters | None = None) -> Selection:
    return Selection(recording, recording.start_us, recording.end_us + 1, filters or Filters())


def names(recording: Recording) -> set[str]:
    return {function.name for function in everything(recording).stacks.functions}


def test_the_last_sample_need_not_be_the_latest(tmp_path: Path) -> None:
    with imported(
        tmp_path, ("a 1/1 [000]", 0, WORK), ("a 1/1 [001]", 9.5, WORK), ("a 1/1 [000]", 2, WORK)
    ) as recording:
        assert (recording.start_us, recording.end_us) == (START, START + 9_500_000)
        heat = subsecond(everything(recording), rows=50)
        assert heat.values.sum() == 3
        assert heat.values.shape[0] == 10


def test_interrupt_work_on_top_of_idle_is_work(tmp_path: Path) -> None:
    with imported(tmp_path, ("swapper 0/0 [000]", 0, IDLE), ("swapper 0/0 [000]", 1, SOFTIRQ + IDLE)) as recording:
        assert everything(recording).counts().sum() == 1
        assert everything(recording, Filters(idle=True)).counts().sum() == 2
        shown = everything(recording)
        hot = [shown.stacks.of(at) for at, count in enumerate(shown.counts()) if count]
        assert [[function.name for function in stack][-1] for stack in hot] == ["mlx5e_napi_poll"]


@pytest.mark.parametrize("comm", ["python3", "kworker/3:1-mm", "python3 worker 7", "7zip", "ray::IDLE"])
def test_a_name_keeps_its_digits(tmp_path: Path, comm: str) -> None:
    with imported(tmp_path, (f"{comm}  77/78 [003]", 0, WORK)) as recording:
        assert recording.table("tasks").column("comm").to_pylist() == [comm]
        assert everything(recording, Filters(comms=(comm,))).counts().sum() == 1


@pytest.mark.parametrize(
    "name", ["Ptr::operator->", "Vec::operator+", "F::operator()() const", "A::operator<<", "x::operator++"]
)
def test_names_of_operators_are_whole(tmp_path: Path, name: str) -> None:
    with imported(tmp_path, ("a 1/1 [000]", 0, f"\t            1234 {name}+0x1f (/bin/app)\n")) as recording:
        assert name in names(recording)


def test_core_process_and_thread_are_kept(tmp_path: Path) -> None:
    with imported(tmp_path, ("a 10/11 [003]", 0, WORK), ("b 20/20 [005]", 1, WORK)) as recording:
        for only in (
            Filters(cpus=frozenset({3})),
            Filters(pids=frozenset({10})),
            Filters(tids=frozenset({11})),
            Filters(comms=("b",)),
        ):
            assert everything(recording, only).counts().sum() == 1
        assert recording.node["cpus"]["online"] == [3, 5]
