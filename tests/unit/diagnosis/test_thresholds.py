"""Judgement has one home: diagnosis/thresholds.py, where each value has a unit and a basis."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from zombiescope.diagnosis import pattern_pages, thresholds

ROOM = Path(thresholds.__file__).parent
DOCS = Path(__file__).parents[3] / "docs" / "patterns" / "thresholds.md"
BASES = ("measured", "kernel", "report", "estimated", "derived", "chosen")

BOUNDS = (
    "DEFAULT", "KEPT", "LIMIT_S", "LONGEST", "MANY_RULED_OUT", "MAX", "MOST", "NAMED", "NOTED", "ONE_BY_ONE", "READ",
    "SHOWN", "CHARACTERS", "FRAMES", "FOLLOWED",
)  # fmt: skip
"""Words in the name of a bound: how much is read, followed, kept or shown. It changes how long an answer is, not what
it says."""

OTHERS: dict[str, str] = {
    "report.terminal._INDENT": "columns of a terminal",
    "ancestry.KTHREADD": "the kernel's pid of kthreadd",
    "incidents._ANCHORS": "an order",
    "bursts.PAST": "computed from a threshold and the interval of a source",
    "live.HISTORY_US": "how far back names are read",
    "library_pages._DONTNEED": "the kernel's MADV_DONTNEED",
    "memory_balance.HUGE_PAGE": "the kernel's",
    "memory_balance.PAGE": "the kernel's",
    "moments.QUIET_LOOKS": "looks at a window in which nothing happened",
    "pass_limit.CHECKS": "a watchdog of a process",
    "pass_limit.LEAST_BYTES": "limits of a process",
    "pass_limit.LEAST_RATIO": "a watchdog of a process",
    "patterns.conntrack.BUCKET_BYTES": "the size of a struct, for the text of a step",
    "patterns.conntrack.ENTRY_BYTES": "the size of a struct, for the text of a step",
    "patterns.oom_console.ERRORS": "the kernel's log level",
    "patterns.writeback_stall.PAGE_BYTES": "the kernel's",
    "sample_grid.BIN_US": "the resolution of the grid",
    "sample_grid.SECOND_BINS": "the resolution of the grid",
    "selftest.one_pass.BEFORE_US": "which part of the built-in recording is diagnosed",
    "standby.LOOK_BYTES": "limits of a process",
    "standby.LOOK_CPU_S": "limits of a process",
    "standby.LOOK_S": "limits of a process",
    "standby.NEW_MODULES": "limits of a process",
    "standby.PRIORITY": "limits of a process",
    "standby.RESULT_BYTES": "limits of a process",
    "workload._LEAST_ID": "the shape of a container id",
    "xid.RECOVERY_CODE": "the driver's codes",
}
"""Numbers that are no judgement."""


def constants() -> dict[str, ast.expr]:
    """Names in capitals at the top of a module, whose value holds a number."""
    found: dict[str, ast.expr] = {}
    for path in sorted(ROOM.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)):
                    if name.isupper() and name not in ("PATTERN", "DETECTOR") and _is_figure(node.value):
                        module = ".".join(path.relative_to(ROOM).with_suffix("").parts)
                        found[f"{module}.{name}"] = node.value
    return found


def _is_figure(value: ast.expr) -> bool:
    """A number, a sum or product with one, or a row or table of nothing else."""
    if isinstance(value, ast.BinOp):
        return _is_figure(value.left) or _is_figure(value.right)
    if isinstance(value, ast.UnaryOp):
        return _is_figure(value.operand)
    if isinstance(value, ast.Tuple | ast.Dict):
        entries = value.elts if isinstance(value, ast.Tuple) else value.values
        return bool(entries) and all(_is_figure(one) for one in entries)
    return (
        isinstance(value, ast.Constant) and isinstance(value.value, int | float) and not isinstance(value.value, bool)
    )


def test_no_judgement_is_declared_elsewhere() -> None:
    elsewhere = {name for name in constants() if not name.startswith("thresholds.")}
    left = {name for name in elsewhere if name not in OTHERS and not any(word in name for word in BOUNDS)}
    assert left == set(), "move it to diagnosis/thresholds.py, or say here why it is no judgement"


def test_no_comparison_has_a_fraction_of_its_own() -> None:
    found = [
        f"{path.relative_to(ROOM)}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted(ROOM.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare) and any(_is_fraction(one) for one in (node.left, *node.comparators))
    ]
    # The unit in which a time is printed.
    assert [one for one in found if not one.endswith("seconds >= 0.01")] == []


def _is_fraction(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value not in (0.0, 1.0)


@pytest.mark.parametrize("name", sorted(name for name in constants() if name.startswith("thresholds.")))
def test_a_threshold_has_a_unit_and_a_basis(name: str) -> None:
    rows = {row[1]: row for row in pattern_pages.threshold_rows()}
    _, _, _, unit, basis = rows[name.removeprefix("thresholds.")]
    assert unit
    assert basis.startswith(BASES)


def test_the_table_is_up_to_date() -> None:
    assert DOCS.read_text() == pattern_pages.threshold_page(), "run: python -m zombiescope.diagnosis.patterns"
