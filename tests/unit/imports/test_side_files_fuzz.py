"""Damaged side files: never a traceback, and rows that a recording can hold."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.targets.files import TEXTS, read_all


@pytest.mark.parametrize("seed", range(100))
def test_mutations(seed: int) -> None:
    chance = random.Random(seed)
    text = chance.choice(TEXTS)
    for _ in range(chance.randrange(1, 8)):
        at = chance.randrange(len(text) + 1)
        put = chance.choice(
            ["", "9" * 30, "NaN", "null", "[", "}", '"', "\n", "-1", "\ud800", r"\ud800", "Feb 30", "\x00", "1e999"]
        )
        text = text[:at] + put + text[at + chance.randrange(12) :]
    read_all(text)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200), st.sampled_from(TEXTS))
def test_any_text(more: str, text: str) -> None:
    read_all(more)
    read_all(text + more)
