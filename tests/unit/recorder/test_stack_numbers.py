"""Numbers of stacks between a reader and the recorder: what was said is enough to read every row."""

from __future__ import annotations

from array import array

from zombiescope.recorder.stack_numbers import MOST_NUMBERS, MOST_REMEMBERED, StackNumbers, are_known, packed


def test_a_function_and_a_stack_are_said_once() -> None:
    numbers: StackNumbers[str] = StackNumbers()
    assert [numbers.of(stack) for stack in (["a", "b"], ["a"], ["a", "b"])] == [0, 1, 0]
    assert numbers.take() == {"new": True, "functions": ["a", "b"], "stacks": [(0, 1), (0,)]}
    assert numbers.of(["b", "c"]) == 2
    assert numbers.take() == {"new": False, "functions": ["c"], "stacks": [(1, 2)]}


def test_numbers_begin_again_before_the_recorder_has_to_remember_too_much() -> None:
    numbers: StackNumbers[int] = StackNumbers()
    news = 0
    for turn in range(3 * MOST_NUMBERS):
        numbers.of([turn])
        news += bool(numbers.take()["new"])
    assert news == 3


def test_every_number_of_a_message_is_one_that_it_said() -> None:
    """Numbers begin again between two messages: within one, rows would be given the stacks of others."""
    numbers: StackNumbers[int] = StackNumbers()
    functions: list[int] = []
    stacks: list[tuple[int, ...]] = []
    first = 0
    for rows_of_a_message in (1500, 1500, 1500, 1500, 3 * MOST_NUMBERS, 1500):
        rows = [(row, numbers.of([row])) for row in range(first, first + rows_of_a_message)]
        first += rows_of_a_message
        said = numbers.take()
        if said["new"]:
            functions, stacks = [], []
        functions += said["functions"]
        stacks += said["stacks"]
        assert max(len(functions), len(stacks)) <= MOST_REMEMBERED
        told = [(row, functions[stacks[number][0]]) for row, number in rows if number is not None]
        assert all(row == found for row, found in told)
        assert len(told) >= min(len(rows), MOST_NUMBERS)


def test_what_is_remembered_of_a_stack_is_small_and_holds_numbers_only() -> None:
    assert packed([0, 7, MOST_REMEMBERED - 1, 3], 3).tolist() == [0, 7, MOST_REMEMBERED - 1]
    assert packed([-1, MOST_REMEMBERED, 1 << 70, "7", None, True], 100).tolist() == [-1] * 6
    assert packed([], 100).tolist() == []


def test_a_stack_is_known_by_its_lowest_and_highest_number() -> None:
    assert are_known(array("i"), 0)
    assert are_known(array("i", [0, 2, 1]), 3)
    assert not are_known(array("i", [0, 3, 1]), 3)
    assert not are_known(array("i", [2, -1, 1]), 3)
