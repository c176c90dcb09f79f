"""docs/python.md does what it says, as a reader pastes it. Polars and Spark have a venv of their own: tests/engines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers import page_snippets


@pytest.mark.parametrize("heading", ["Python", "Notebook", "pandas", "DuckDB"])
def test_a_snippet_runs_on_the_demo(heading: str, demo: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", page_snippets.below("python.md", heading)],
        cwd=demo, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = {"Python": "critical ecs.service", "Notebook": "96)", "pandas": "39", "DuckDB": "mem_cgroup_nr_lru_pages"}
    assert shown[heading] in done.stdout


def test_every_engine_of_the_page_is_tried_somewhere() -> None:
    text = (page_snippets.DOCS / "python.md").read_text()
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["Python", "Notebook", "pandas", "DuckDB", "Polars", "Spark"]
