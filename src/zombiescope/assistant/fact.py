"""A fact is one sentence with an id and a time; an answer is a list of facts that fits a token budget.

A tokenizer differs from model to model, so the budget uses an upper bound: at most four letters, three digits or one
other character count as one token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from zombiescope.base.text import printable

MOST_TOKENS = 2_000
"""Of one answer."""
LONGEST_FACT = 400
"""Characters; a line of the kernel log can be much longer."""

_TOKEN = re.compile(r"[A-Za-z]{1,4}|\d{1,3}|[^\sA-Za-z\d]")


def tokens(text: str) -> int:
    """How many tokens a text is at most."""
    return len(_TOKEN.findall(text))


def written(document: dict[str, Any]) -> str:
    """As JSON. Names that other programs chose are escaped in the strings themselves: an assistant decodes the JSON."""
    return json.dumps(_visible(document), ensure_ascii=False, separators=(",", ":"))


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(str(key)): _visible(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_visible(each) for each in value]
    return value


def clock(at: float | None) -> str | None:
    """Unix seconds as ISO 8601 in UTC: every tool takes a time in this form."""
    if at is None:
        return None
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return f"{text.removesuffix('.000')}Z"


@dataclass(frozen=True, slots=True)
class Fact:
    """`at` is in Unix seconds; None where the fact is about the whole window."""

    id: str
    text: str
    at: float | None = None

    def document(self) -> dict[str, str]:
        text = self.text if len(self.text) <= LONGEST_FACT else f"{self.text[: LONGEST_FACT - 3]}..."
        when = clock(self.at)
        return {"id": self.id, "fact": text} if when is None else {"id": self.id, "at": when, "fact": text}


@dataclass(frozen=True, slots=True)
class Answer:
    """`facts`: the most important one first. `about`: what the facts have in common."""

    about: dict[str, Any]
    facts: Sequence[Fact]
    not_measured: Sequence[str] = ()
    more: str | None = None
    """Which question shows what did not fit."""

    def document(self) -> dict[str, Any]:
        """Facts are left out from the end until the answer fits, and counted."""
        facts, lacking = [fact.document() for fact in self.facts], [text[:LONGEST_FACT] for text in self.not_measured]
        while True:
            found = {**self.about, "facts": facts, "not_measured": lacking}
            if left_out := len(self.facts) - len(facts) + len(self.not_measured) - len(lacking):
                found["left_out"] = left_out if self.more is None else f"{left_out}; {self.more}"
            if tokens(written(found)) <= MOST_TOKENS or not (facts or lacking):
                return found
            (lacking if len(lacking) > max(4, len(facts)) or not facts else facts).pop()


def window(node: str, start: float, end: float) -> dict[str, Any]:
    return {"node": node, "from": clock(start), "to": clock(end)}


def percent(ratio: float | None) -> str:
    return "not measured" if ratio is None else f"{100 * ratio:.0f}%" if ratio >= 0.1 else f"{100 * ratio:.1f}%"


def number(value: float) -> str:
    """Three digits are enough for a sentence; counts stay exact."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
