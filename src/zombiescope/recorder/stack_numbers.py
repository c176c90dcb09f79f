"""Functions and stacks by number, on their way from a reader to the recorder: each is said once, in the message with
the first row that needs it.

The recorder keeps what was said (pythons.py, whole_stacks.py), so there is a bound. Numbers begin again once a message
that reached it is taken, and the next one says so ("new"); within a message they hold, else its rows would be given
the stacks of others.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar

MOST_NUMBERS = 4000
"""Of functions, and of stacks, after which numbers begin again."""
MOST_REMEMBERED = 2 * MOST_NUMBERS
"""By the recorder: of a second that has more, the rows beyond are left out."""

F = TypeVar("F", bound=Hashable)
"""What a function is known by."""


class StackNumbers(Generic[F]):
    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._functions: dict[F, int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._new_functions: list[F] = []
        self._new_stacks: list[tuple[int, ...]] = []
        self.is_new = True
        """They begin with the next message: a number that was given before it is no longer one."""

    def of(self, functions: Sequence[F]) -> int | None:
        """The number of a stack, the outermost first; None where there are more by now than the recorder remembers."""
        if max(len(self._functions) + len(functions), len(self._stacks) + 1) > MOST_REMEMBERED:
            return None
        key = tuple(map(self._function, functions))
        if key not in self._stacks:
            self._stacks[key] = len(self._stacks)
            self._new_stacks.append(key)
        return self._stacks[key]

    def _function(self, function: F) -> int:
        if function not in self._functions:
            self._functions[function] = len(self._functions)
            self._new_functions.append(function)
        return self._functions[function]

    def take(self) -> dict[str, Any]:
        """What a message says of them, with the rows that were numbered so far."""
        said = {"new": self.is_new, "functions": self._new_functions, "stacks": self._new_stacks}
        self._new_functions, self._new_stacks, self.is_new = [], [], False
        if max(len(self._functions), len(self._stacks)) >= MOST_NUMBERS:
            self._begin()
        return said


def packed(stack: Sequence[Any], most_depth: int) -> array[int]:
    """A stack as the recorder remembers it, thousands of them: four bytes for each frame in place of an object. What
    cannot be the number of a function is -1, which is none."""
    numbers = stack[:most_depth]
    return array("i", [each if type(each) is int and 0 <= each < MOST_REMEMBERED else -1 for each in numbers])


def are_known(stack: array[int], functions: int) -> bool:
    """Whether each number of a stack is that of one of so many functions."""
    return not stack or (min(stack) >= 0 and max(stack) < functions)
