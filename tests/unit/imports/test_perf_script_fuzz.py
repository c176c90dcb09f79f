"""Damaged perf script text: never a crash, and every event line is a sample or is counted."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.targets.perf import SCRIPT_LINES as LINES
from tests.fuzz.targets.perf import SCRIPT_SAMPLES
from tests.helpers.script_rows import parse

TEXT = b"".join(SCRIPT_SAMPLES)


@pytest.mark.parametrize("seed", range(60))
def test_mutations(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(TEXT * 3)
    for _ in range(chance.randrange(1, 60)):
        at = chance.randrange(len(data))
        match chance.randrange(5):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                del data[at : at + chance.randrange(40)]
            case 2:
                data[at:at] = bytes(chance.choice(b"\n\t :.[]()/0a\x00\xff") for _ in range(chance.randrange(9)))
            case 3:
                data[at:at] = data[chance.randrange(len(data)) :][: chance.randrange(200)]
            case _:
                del data[chance.randrange(len(data) // 2, len(data)) :]
    # parse() itself holds that samples and what was skipped add up to the event lines.
    whole = parse(bytes(data)).samples
    pieces = parse(bytes(data), piece=chance.randrange(1, 50), limit=chance.randrange(1, 5)).samples
    # A period that a line does not say is 1 among lines that say theirs: which those are depends on where rows are cut.
    assert [sample._replace(period=None) for sample in pieces] == [sample._replace(period=None) for sample in whole]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=60)), max_size=30), st.booleans())
def test_lines_in_any_order(lines: list[str], cut: bool) -> None:
    parse("\n".join(lines).encode("utf-8", "surrogatepass"), cut=cut)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    parse(data)
    parse(b"a 1 [000] 1.000000: 1 cycles: \n" + data)
