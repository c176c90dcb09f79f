"""JSON that somebody else wrote. It is read here and nowhere else: what cannot be read is always a ValueError.

Python's own reader raises RecursionError for text that is nested deeply, which hardly any caller thinks of; and text
nested a little less deeply is read, and then breaks whoever writes or walks it with fewer frames left. Nothing that is
exchanged here is nested more than ten deep.
"""

from __future__ import annotations

import json
from typing import Any

MOST_DEPTH = 64


def loads(text: str | bytes) -> Any:
    """The document. ValueError for what is none, or is nested so deep that it was made to hurt."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    opened = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if opened > MOST_DEPTH and _is_deeper(found, MOST_DEPTH):
        raise ValueError("it is nested too deeply")
    return found


def _is_deeper(document: Any, most: int) -> bool:
    """Whether anything is nested more than so deep; level by level, without recursion."""
    level = [document]
    for _ in range(most):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        level = [each for each in inner if isinstance(each, dict | list)]
        if not level:
            return False
    return True
