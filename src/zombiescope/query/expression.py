"""Regular expressions that are searched for in names.

Python's own may take for ever on a short text ("(.+)+x"). An expression that comes from somebody else's link is
searched for by RE2, as pyarrow brings it: its time grows with the length of the text, and it knows neither
look-around nor references.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from zombiescope.store import columns


@dataclass(frozen=True, slots=True)
class Linear:
    """An expression that RE2 understands."""

    pattern: str

    @classmethod
    def compiled(cls, pattern: str) -> Linear:
        """Raises ValueError."""
        made = cls(pattern)
        try:
            made.found_in([""])
        except pa.ArrowException as error:
            raise ValueError(str(error).partition(":")[2].strip() or str(error)) from error
        return made

    def found_in(self, texts: Sequence[str]) -> list[bool]:
        import pyarrow.compute as pc  # 50 ms, and few ask for this

        found: list[bool] = pc.match_substring_regex(columns.text_array(texts), self.pattern).to_pylist()
        return found


Expression = re.Pattern[str] | Linear


def found_in(expression: Expression, texts: Sequence[str]) -> list[bool]:
    """For each text whether the expression is found in it."""
    if isinstance(expression, Linear):
        return expression.found_in(texts)
    return [expression.search(text) is not None for text in texts]
