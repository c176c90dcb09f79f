"""JSON that somebody else wrote. It is read here and nowhere else: what cannot be read is always a ValueError.

Python's own reader raises RecursionError for text that is nested deeply, which hardly any caller thinks of; and text
nested a little less deeply is read, and then breaks whoever writes or walks it with fewer frames left. Nothing that is
exchanged here is nested more than ten deep.
"""

from __future__ import annotations

import json
import re
from typing import Any

MOST_DEPTH = 64


def loads(text: str | bytes) -> Any:
    """The document. ValueError for what is none, or is nested so deep that it was made to hurt."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    opened = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if opened > MOST_DEPTH and _is_deeper(text, MOST_DEPTH):
        raise ValueError("it is nested too deeply")
    return found


_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def _is_deeper(text: str | bytes, most: int) -> bool:
    """Whether anything in a document is nested more than so deep: of its brackets, which no string has inside, the
    innermost pairs go, level by level. A tenth of what it costs to walk the document, which is read each second."""
    if isinstance(text, bytes) and not (encoding := json.detect_encoding(text)).startswith("utf-8"):
        text = text.decode(encoding, "surrogatepass")
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    left = _STRINGS.sub(b"", data).translate(_BRACKETS, _NO_BRACKETS)
    for _ in range(most):
        if not left:
            return False
        left = left.replace(b"[]", b"")
    return bool(left)
