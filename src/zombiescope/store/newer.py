"""What only a newer version of zombiescope can read in a segment: tables whose numbers this one does not know.

The header of a segment describes every table that its recorder could write, so their blocks can be skipped (log.py).
Such a segment is read as far as it is known, and nobody but a version that knows all of it may rewrite or replace it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from zombiescope.store import schema

TABLES = "tables"
"""The key of the header."""
_MOST_COLUMNS = 256
_LETTERS = frozenset("tisl")


def described() -> dict[str, str]:
    """The kinds of columns of every table, by its number."""
    return {str(number): table.kinds.decode() for number, table in schema.BY_NUMBER.items()}


def known(number: int) -> schema.Table | None:
    """The table as blocks of this number have it."""
    return schema.RETIRED.get(number) or schema.BY_NUMBER.get(number)


def tables(header: Mapping[str, Any]) -> dict[int, bytes]:
    """The kinds of columns of the tables that a header describes and this version does not know."""
    said = header.get(TABLES)
    if not isinstance(said, dict):
        return {}
    numbers = {int(number): kinds for number, kinds in said.items() if number.isdecimal() and len(number) < 4}
    return {number: kinds.encode() for number, kinds in numbers.items() if known(number) is None and _is_valid(kinds)}


def _is_valid(kinds: object) -> bool:
    return isinstance(kinds, str) and 0 < len(kinds) <= _MOST_COLUMNS and _LETTERS.issuperset(kinds)


def may_hold(header: Mapping[str, Any]) -> bool:
    """Whether there may be such a table in the segment: its header describes one, or describes none at all."""
    said = header.get(TABLES)
    if not isinstance(said, dict) or not said:
        return True
    return any(not number.isdecimal() or known(int(number)) is None for number in said)


def what(numbers: Collection[int]) -> str | None:
    """For people; None where there is none."""
    if not numbers:
        return None
    named = f"table{'s' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))}"
    return f"was written by a newer version of zombiescope, and this one does not know its {named}"
