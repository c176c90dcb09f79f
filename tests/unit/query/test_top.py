"""The hottest functions and stacks."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.made import Sample, opened, write
from tests.helpers.recordings import SECOND, START_US

from zombiescope.query import top
from zombiescope.query.selection import Selection
from zombiescope.store.reader import Recording, open_recording


def hottest(recording: Recording) -> dict[str, tuple[int, int]]:
    selection = Selection(recording, recording.start_us, recording.end_us + 1)
    return {
        hot.function.name: (hot.self_samples, hot.total_samples)
        for hot in top.functions(selection.stacks, selection.counts())
    }


def test_self_is_the_innermost_frame_and_total_any_frame(tmp_path: Path) -> None:
    with opened(tmp_path, Sample(1, "main;a"), Sample(2, "main;a;b"), Sample(3, "main;a;b")) as recording:
        assert hottest(recording) == {"b": (2, 2), "a": (1, 3), "main": (0, 3)}


def test_recursion_counts_once_per_sample(tmp_path: Path) -> None:
    with opened(tmp_path, Sample(1, "main;f;g;f;f"), Sample(2, "main;f")) as recording:
        assert hottest(recording)["f"] == (2, 2)


def test_skid_is_charged_to_the_caller_and_stays_on_the_stack(tmp_path: Path) -> None:
    with opened(tmp_path, Sample(1, "[k]read;[k]lock;[k]_raw_spin_unlock_irqrestore")) as recording:
        found = hottest(recording)
    assert found["lock"] == (1, 1)
    assert found["_raw_spin_unlock_irqrestore"] == (0, 1)


def test_a_user_function_with_the_name_of_a_skid_leaf_is_its_own(tmp_path: Path) -> None:
    with opened(tmp_path, Sample(1, "main;do_syscall_64")) as recording:
        assert hottest(recording)["do_syscall_64"] == (1, 1)


def test_the_same_stack_in_two_parts_is_one(tmp_path: Path) -> None:
    write(tmp_path, [Sample(1, "x"), Sample(2, "main;a")])
    write(tmp_path, [Sample(1, "main;a"), Sample(2, "main;a")], start_us=START_US + SECOND, seq=1)
    with open_recording(tmp_path) as recording:
        selection = Selection(recording, START_US, START_US + 2 * SECOND)
        stacks = top.stacks(selection.stacks, selection.counts())
    assert [([frame.name for frame in hot.frames], hot.samples) for hot in stacks] == [(["main", "a"], 3), (["x"], 1)]
    assert stacks[0].ratio == 0.75
