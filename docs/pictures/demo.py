"""Draws docs/pictures/demo.svg: what `zombiescope demo` prints. `make pictures` runs it, and a test compares it."""

from __future__ import annotations

import io
import os
import re
import tempfile
from pathlib import Path
from unittest import mock

from rich.console import Console

from zombiescope.cli import demo, diagnose

WIDTH = 100


def svg() -> str:
    console = Console(
        width=WIDTH, record=True, force_terminal=True, color_system="256", file=io.StringIO(), highlight=False,
        markup=False, emoji=False,
    )  # fmt: skip
    console.print("$ zombiescope demo", style="bold")
    with (
        tempfile.TemporaryDirectory() as place,
        mock.patch.dict(os.environ, {"TZ": "UTC"}),
        mock.patch.object(diagnose, "console", return_value=console),
        mock.patch.object(demo, "console", return_value=Console(file=io.StringIO())),
    ):
        demo.command(output=Path(place))
    drawn = console.export_svg(title="zombiescope demo", unique_id="demo")
    # Rich names a font on a server; a picture must not load anything.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")
    return drawn.replace(".venv/bin/zombiescope", "zombiescope")


if __name__ == "__main__":
    (Path(__file__).parent / "demo.svg").write_text(svg())
