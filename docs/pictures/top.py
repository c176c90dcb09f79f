"""Draws docs/pictures/top.svg: a frame of `zombiescope top` over a synthetic recording of the founding case.

    python docs/pictures/top.py

96 cores, the average at 7 %, and one core lost to the kernel, the way the first of these incidents looked.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.helpers.recordings import write_recording  # noqa: E402  the path above makes it importable

from zombiescope.cli.top.screen import View, compose  # noqa: E402
from zombiescope.cli.window import zone_of  # noqa: E402
from zombiescope.query.ran_lately import RanLately  # noqa: E402
from zombiescope.query.recent import Recent  # noqa: E402
from zombiescope.query.worst import WorstSecond  # noqa: E402
from zombiescope.store.log import SegmentReader  # noqa: E402

WIDTH, HEIGHT = 100, 30
CORES, SECONDS = 96, 130


def view() -> View:
    """The node five seconds into the incident."""
    recent, worst, ran = Recent(), WorstSecond(), RanLately()
    with tempfile.TemporaryDirectory() as place:
        written = write_recording(place, node="gpu-17", cpus=CORES, seconds=SECONDS, hz=49, busy=0.07)
        assert written.incident is not None
        until_us = written.incident.from_us + 6_000_000
        for path in written.segments:
            with path.open("rb") as file:
                frames = [frame for frame in SegmentReader(file).frames() if frame.wall_us <= until_us]
            for frame in frames:
                recent.update(frame)
            worst.update(frames)
            ran.update(frames)
        node = json.loads((written.node_dir / "node.json").read_text()) | {"missing": []}
    return View(node, recent, zone_of(node), "live", worst=worst.worst, ran=ran.most(node, 8))


def svg() -> str:
    console = Console(
        width=WIDTH, height=HEIGHT, record=True, force_terminal=True, color_system="256", file=io.StringIO()
    )
    console.print(Text("\n").join(compose(view(), WIDTH, HEIGHT)))
    made = console.export_svg(title="zombiescope top", unique_id="top")
    # Rich names a font on a server; a picture should not need one.
    return re.sub(r"@font-face \{.*?\}\s*", "", made, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")


def main() -> None:
    (Path(__file__).parent / "top.svg").write_text(svg())


if __name__ == "__main__":
    main()
