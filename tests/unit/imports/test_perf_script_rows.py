"""Rows that are taken before the text is over: where they are cut changes nothing."""

from __future__ import annotations

import pytest
from tests.helpers.script_rows import parse

from zombiescope.imports.perf_script import ScriptHeader

FRAME_WITH_A_TIME = b"a\n\t1 f\n\nb\n\t1.000: \n\t2 g\n\n"


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_a_frame_that_looks_like_a_time_stays_with_its_sample(piece: int, limit: int) -> None:
    whole = parse(FRAME_WITH_A_TIME)
    assert [sample.comm for sample in whole.samples] == ["a", "b"]
    assert parse(FRAME_WITH_A_TIME, piece=piece, limit=limit).samples == whole.samples


def test_a_header_with_thousands_of_digits_is_no_time() -> None:
    many = "9" * 10_000
    lines = [
        f"# reference time: x = {many}.000001 (TOD) = {many}.000001 (",
        f"# captured on    : Sun Nov {many} 1:1:1 2026",
    ]
    header = ScriptHeader([*lines, f"# nrcpus online : {many}"])
    assert header.offset_us is None
    assert "cpus" not in header.facts()
