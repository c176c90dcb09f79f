"""The command line in a process of its own, on a machine where no recorder runs unless a test starts one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True)
class Cli:
    """The real entry point in a process of its own, on a machine where no recorder runs."""

    home: Path

    def __call__(self, *arguments: str, **environment: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "zombiescope.cli.main", *arguments],
            capture_output=True, text=True, timeout=60, check=False, cwd=self.home,
            env=self.environment(**environment),
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ZOMBIESCOPE", "XDG"))}
        source = Path(__file__).parents[2] / "src"
        return kept | {
            "PYTHONPATH": str(source), "HOME": str(self.home),
            "ZOMBIESCOPE_RUNTIME_DIR": str(self.home / "run"),
            "COLUMNS": "80", "LINES": "25", **more,
        }  # fmt: skip
