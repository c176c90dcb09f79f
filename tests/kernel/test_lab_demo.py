"""`lab demo` to its end: zombies are leaked for real, named, and let go by `fix --apply --yes`, which verifies it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope.lab import leftovers

pytestmark = [pytest.mark.kernel, pytest.mark.long, pytest.mark.timeout(400)]

FEW = 300
"""Of 6,000: cgroups that the rest of the machine has made and lost meanwhile."""


def test_it_ends_with_fix_and_leaves_nothing(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    needs.tracefs()
    needs.memory_cgroup()
    words = [sys.executable, "-m", "zombiescope.cli.main", "lab", "demo", "--yes", "--no-open"]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=350, check=False,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    assert re.search(r"repair: zombiescope fix \S+ --incident [0-9a-f]+ --apply --yes", said), said
    assert "applied: suspend supervisor" in said
    assert "applied: delete" in said
    assert re.search(r"^\S+  verified$", said, re.MULTILINE), said
    left = re.search(r"([\d,]+) of the zombies are left", said)
    assert left is not None
    assert int(left[1].replace(",", "")) <= FEW
    assert not leftovers.find("zombie-supervisor")
    assert (tmp_path / "zombiescope" / "lab-demo" / "report.html").exists()
