"""What all views have in common: none imports pandas, which would add a third of a second to a command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.helpers.recordings import write_recording

from zombiescope.store import compact


def test_no_view_imports_pandas(tmp_path: Path) -> None:
    written = write_recording(tmp_path, rollup_days=1)
    compact.compact(written.node_dir, [written.segments[0].name])
    program = f"""
import sys
from zombiescope.store import pack, reader
from zombiescope.query import cgroups
from zombiescope.query import cores
from zombiescope.query import events
from zombiescope.query import history
from zombiescope.query import info
from zombiescope.query import worst
with reader.open_recording({str(tmp_path)!r}) as recording:
    cgroups.cgroups(recording)
    cores.cores(recording)
    events.events(recording)
    history.history(recording)
    info.info(recording)
    worst.worst_second(recording)
    pack.pack(recording, recording.start_us, recording.end_us, {str(tmp_path / "x.zscope")!r})
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
