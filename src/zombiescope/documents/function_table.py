"""Functions as small tables of names, modules and kinds, and for each node its place in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from zombiescope.query.stacks import Function
from zombiescope.store.columns import Ints

NONE = 0xFFFF_FFFF
"""The module of a function that has none."""


class FunctionTable:
    """`function` are numbers of functions; only those that are among them are named."""

    def __init__(self, functions: Sequence[Function], function: Ints) -> None:
        used, place = np.unique(function, return_inverse=True)
        known = [functions[number] for number in used.tolist()]
        names, self.names = _numbered([each.name for each in known])
        modules, self.modules = _numbered([each.module for each in known])
        kinds, self.kinds = _numbered([each.kind for each in known])
        self.name = names[place].astype(np.uint32)
        self.module = modules[place].astype(np.uint32)
        self.kind = kinds[place].astype(np.uint8)


def _numbered(texts: Sequence[str | None]) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """The place of each text among the distinct ones."""
    place: dict[str, int] = {}
    numbers = [NONE if text is None else place.setdefault(text, len(place)) for text in texts]
    return np.array(numbers, np.int64), tuple(place)
