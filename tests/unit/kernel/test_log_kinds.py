"""A line of the kernel's log means what its row says, and nothing else in the program says it again."""

from __future__ import annotations

from zombiescope.diagnosis import patterns
from zombiescope.kernel.log_formats import FORMATS
from zombiescope.kernel.log_kinds import KINDS, ROWS


def test_each_line_that_can_begin_an_incident_has_one_row() -> None:
    assert len(KINDS) == len(ROWS)
    assert {one.kind for one in FORMATS if one.severity != "info"} <= set(KINDS)


def test_a_row_names_a_pattern_that_exists() -> None:
    assert {row.pattern for row in ROWS if row.pattern} <= {pattern.id for pattern in patterns.every()}


def test_a_fix_asks_for_fields_that_one_of_its_lines_has() -> None:
    for row in ROWS:
        if row.fix is None:
            continue
        kinds = {other.kind for other in ROWS if other.fix is row.fix}
        known = {name for one in FORMATS if one.kind in kinds for name in one.pattern().groupindex}
        for step in row.fix.steps:
            assert not step.fields or set(step.fields) & known, f"{row.kind}: {step.text}"
