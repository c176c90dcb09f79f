#!/usr/bin/env python3
"""The built-in recording of the self-test, and what its diagnosis must find, made from the founding case.

    scripts/selftest_recording.py [FOLDER]        default: src/zombiescope/diagnosis/selftest

Eleven seconds of the case around the lost core, with Docker's events of the minutes before. The first half is a Parquet
part, the second half is log segments, as in a recording that is being made: a diagnosis pass reads both and joins
their ids. The events and the samples are generated, so no machine of anybody is in it.

Only this script imports the lab and the importer; a node gets the two files. Run `zombiescope selftest` afterwards.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from zombiescope.imports.founding_case import CASE
from zombiescope.imports.raw_case import RawCase, Work
from zombiescope.imports.session import Options, Session, Silence
from zombiescope.store import layout, schema
from zombiescope.store.batch import Batch
from zombiescope.store.compact import compact
from zombiescope.store.segment_writer import SegmentWriter

FOLDER = Path(__file__).resolve().parents[1] / "src" / "zombiescope" / "diagnosis" / "selftest"
HOST = "selftest"
FROM_S, CUT_S, TO_S = 11, 17, 22
"""Of the case's thirty seconds; core 39 is lost from 14 to 20."""
HZ = 49
"""Half of the case's rate: enough for the answer, and the pass costs two thirds."""
WRITTEN = (2025, 4, 1, 0, 0, 0)
"""The time of every member, so that the same rows make the same file."""
EXPECTED = {
    "incidents": 1,
    "pattern": "zombie-memcg",
    "severity": "critical",
    "culprit": "ecs.service, which runs amazon/amazon-ecs-agent:latest",
    "hog": "kubelet",
    "core": 39,
}
"""As the case was published: kubelet walks the memory cgroups that ecs.service leaked, and core 39 is lost."""


def piece(from_s: int, to_s: int) -> RawCase:
    """Some seconds of the case."""

    def held(cpu: int, at_s: float, dice: random.Random) -> Work | None:
        return CASE.held(cpu, at_s + from_s, dice)

    def load(cpu: int, second: int, dice: random.Random) -> Mapping[str, float]:
        return CASE.load(cpu, second + from_s, dice)

    left_s = CASE.seconds - to_s
    return replace(
        CASE,
        host=HOST,
        hz=HZ,
        seconds=to_s - from_s,
        end_unix=CASE.end_unix - left_s,
        uptime_end_s=CASE.uptime_end_s - left_s,
        held=held,
        load=load,
        seed=CASE.seed + from_s,
        dmesg=tuple((at_s - from_s, text) for at_s, text in CASE.dmesg if from_s <= at_s < to_s),
        journal=tuple((ago_s - left_s, text) for ago_s, text in CASE.journal if ago_s > left_s)
        if from_s == FROM_S
        else (),
    )


def imported(case: RawCase, place: Path) -> Path:
    with tempfile.TemporaryDirectory() as raw:
        files = case.write(Path(raw))
        return Session(place, Options(node=HOST), Silence()).run([str(file) for file in files]).path


def add_counters(node_dir: Path) -> None:
    """Pressure and faults at each tick, as the recorder writes them: the case has no such file."""
    batch, dice = Batch(), random.Random(CASE.seed)  # noqa: S311  the same numbers every time
    start_us = (CASE.end_unix - CASE.seconds + FROM_S) * 1_000_000
    named = (("pressure", "some_us", "cpu"), ("vmstat", "pgfault", None), ("snmp", "TcpRetransSegs", None))
    batch.extend(schema.SERIES, [(number, *name, "counter") for number, name in enumerate(named)])
    for tick in range(TO_S - FROM_S):
        at_us = start_us + tick * 1_000_000
        batch.extend(schema.COUNTERS, [(at_us, number, dice.randrange(2_000, 9_000)) for number in range(len(named))])
    writer, end_us = SegmentWriter(node_dir / layout.LOG_FOLDER.rstrip("/")), start_us + (TO_S - FROM_S) * 1_000_000
    header = {"format": schema.FORMAT, "node": HOST, "boot": "", "seq": 0, "recorder_started_us": start_us,
              "interval_us": end_us - start_us, "last_row_us": end_us}  # fmt: skip
    writer.start(start_us + 1, header)
    writer.frame(end_us, 0, batch.take_blocks(end_us), closes=True)
    writer.close(end_us)


def as_recorded(node_file: Path) -> None:
    """node.json as the recorder writes it: a diagnosis treats what was imported differently."""
    node = json.loads(node_file.read_text())
    del node["imported"], node["perf_cmdline"]
    node |= {"hz": HZ, "event": "cpu-clock", "interval_s": 1.0, "timezone": "Etc/UTC", "missing": [], "labels": {}}
    node_file.write_text(json.dumps(node, separators=(",", ":")))


def write(folder: Path) -> None:
    """Both files, into a folder."""
    with tempfile.TemporaryDirectory() as place:
        node_dir = imported(piece(FROM_S, CUT_S), Path(place))
        compact(node_dir)
        imported(piece(CUT_S, TO_S), Path(place))
        add_counters(node_dir)
        as_recorded(node_dir / layout.NODE_FILE)
        kept = [path for path in sorted(node_dir.rglob("*")) if path.suffix in (".json", ".parquet", ".seg")]
        with zipfile.ZipFile(folder / "recording.zscope", "w", zipfile.ZIP_STORED) as archive:
            for path in kept:
                archive.writestr(zipfile.ZipInfo(str(path.relative_to(place)), WRITTEN), path.read_bytes())
    digest = hashlib.sha256((folder / "recording.zscope").read_bytes()).hexdigest()
    text = json.dumps({"recording_sha256": digest, "found": EXPECTED}, indent=1)
    (folder / "expected.json").write_text(text + "\n")


def main() -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)


if __name__ == "__main__":
    main()
