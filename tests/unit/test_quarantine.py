"""A test in quarantine may be tried again, says why it is there, and exists."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from tests.helpers import quarantine

ROOT = Path(__file__).parents[2]


def test_each_test_in_quarantine_exists() -> None:
    for test in quarantine.read(quarantine.FILE.read_text()):
        path, _, name = test.partition("[")[0].partition("::")
        names = {node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)}
        assert name in names, test


@pytest.mark.parametrize("line", ["tests/a.py::b", "tests/a.py::b  # reason: flaky", "test_b  # reason: " + "x" * 20])
def test_a_line_without_its_reason_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="reason"):
        quarantine.read(line)


@pytest.mark.parametrize(("fails", "named", "passed"), [(2, True, True), (3, True, False), (1, False, False)])
def test_only_a_test_in_quarantine_is_tried_again(
    pytester: pytest.Pytester, fails: int, named: bool, passed: bool
) -> None:
    source = inspect.getsource(quarantine).replace("Path(__file__).parents[1]", "Path()")
    pytester.makepyfile(quarantine=source)
    reasons = {"test_made.py::test_it": "loses a race"} if named else {}
    pytester.makeconftest(
        f"import quarantine, pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_protocol(item, nextitem):\n"
        f"    return quarantine.run(item, nextitem, {reasons!r}) or None\n"
    )
    pytester.makepyfile(
        test_made=f"seen = []\ndef test_it(tmp_path):\n    seen.append(1)\n    assert len(seen) > {fails}\n"
    )
    pytester.runpytest_inprocess("-p", "no:xdist", "-p", "no:cacheprovider").assert_outcomes(
        passed=int(passed), failed=int(not passed)
    )
