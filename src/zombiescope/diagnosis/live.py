"""The doctor: looks at the last minutes of a recording that is still being made, and keeps incidents.json.

    python -m zombiescope.diagnosis.live NODE_DIR FROM_US

Started by the recorder when something is suspicious, as a process of its own at the lowest priority. An incident opens
when it is first seen, stays open while its symptoms reach to the end of the recording, and closes when they no longer
do. The window of an incident that is a warning or worse is frozen: retention leaves it alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from zombiescope._text import printable
from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.diagnosis.incident import Incident
from zombiescope.diagnosis.incident_ids import with_known_ids
from zombiescope.diagnosis.report.document import incident as to_document
from zombiescope.recording import incident_file
from zombiescope.recording.freeze import freeze, list_frozen, thaw
from zombiescope.recording.reader import open_recording

AROUND_US = 60_000_000
CLOSED_AFTER_US = 10_000_000


def look(node_dir: Path, from_us: int) -> list[dict[str, Any]]:
    """Diagnoses from `from_us` to the end of the recording, writes incidents.json, and answers what is in it."""
    with open_recording(node_dir) as recording:
        end_us = recording.end_us
        before = incident_file.read(node_dir)
        found = with_known_ids(diagnose(recording, from_us, end_us + 1, live=True), before)
    known = merged(before, found, end_us)
    incident_file.write(node_dir, known, end_us)
    _tell({str(entry.get("id")) for entry in before}, found)
    for each in found.incidents:
        if each.severity != "info":
            _keep(node_dir, each)
    return known


def merged(before: list[dict[str, Any]], found: Diagnosis, end_us: int) -> list[dict[str, Any]]:
    """What was known, replaced by what is known better; an open incident that was not seen again is over."""
    seen = {each.id: to_document(each) for each in found.incidents}
    kept = []
    for entry in before:
        entry = seen.pop(str(entry.get("id")), entry)
        ended = float(entry.get("to") or 0) * 1e6 < end_us - CLOSED_AFTER_US
        kept.append({**entry, "state": "closed"} if ended else entry)
    return sorted([*kept, *seen.values()], key=lambda entry: float(entry.get("from") or 0))


def _tell(before: set[str], found: Diagnosis) -> None:
    """One line for each incident that is new: in the terminal of `up`, or in the journal of a unit."""
    for each in found.incidents:
        if each.id not in before and each.severity != "info" and each.causes:
            at = time.strftime("%H:%M:%S", time.localtime(each.from_us // 1_000_000))
            said = (
                f"{at} {each.severity}: {each.causes[0].summary} (incident {each.id}; zombiescope diagnose --at {at})"
            )
            print(printable(said), file=sys.stderr, flush=True)  # noqa: T201


def _keep(node_dir: Path, each: Incident) -> None:
    """Freezes its window, as it is known now, in place of how it was known before."""
    mine = f"incident {each.id}"
    why = mine + (f" {each.causes[0].pattern}" if each.causes else "")
    with suppress(OSError, ValueError):
        before = [frozen for frozen in list_frozen(node_dir) if frozen.why.startswith(mine)]
        from_us = min([each.from_us - AROUND_US, *(frozen.from_us for frozen in before)])
        kept = freeze(node_dir, from_us, each.to_us + AROUND_US, why)
        thaw(node_dir, (frozen.id for frozen in before if frozen.id != kept.id))


def main(arguments: Sequence[str]) -> int:
    node_dir, from_us = Path(arguments[0]), int(arguments[1])
    os.nice(10)
    try:
        look(node_dir, from_us)
    except (OSError, ValueError) as error:
        print(printable(f"zombiescope doctor: {error}"), file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
