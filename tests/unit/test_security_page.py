"""The page on security says which test closes which hole: those tests are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
PAGE = (HERE / "docs" / "data" / "security-tests.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
HOLES = 21


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda each: Path(each).name)
def test_a_test_that_the_page_names_is_there(path: str, name: str) -> None:
    body = ast.parse((HERE / path).read_text()).body
    assert name in {node.name for node in body if isinstance(node, ast.FunctionDef)}


def test_every_hole_has_one() -> None:
    rows = re.findall(r"^\| (\d+)\. .*?\| (.*?) \|", PAGE, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, HOLES + 1))
    assert all("::test_" in tests for _, tests in rows)


def test_files_that_the_page_names_are_there() -> None:
    for path in re.findall(r"`(tests/[\w/]+\.py)`", PAGE):
        assert (HERE / path).exists(), path
