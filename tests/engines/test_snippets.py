"""The snippets of docs/python.md for Polars and Spark, run as a reader pastes them, on the demo's recording.

`make test-engines` makes the venv and the recording: neither engine is needed by the product, and Spark is large.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import page_snippets

pytestmark = pytest.mark.engines
DEMO = Path(os.environ.get("ZOMBIESCOPE_DEMO", "."))


@pytest.mark.parametrize("heading", ["Polars", "Spark", "pandas"])
def test_a_snippet_runs_on_the_demo(heading: str) -> None:
    assert (DEMO / "rec").is_dir(), "ZOMBIESCOPE_DEMO names the folder with the demo's recording; make test-engines"
    done = subprocess.run(
        [sys.executable, "-c", page_snippets.below("python.md", heading)],
        cwd=DEMO, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "39" in done.stdout
