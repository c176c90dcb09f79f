"""Audit of a root with 10,000 units: drop-ins, aliases and templates among them, half of them enabled."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

from benchmarks.table import Row
from zombiescope.audit import examine

UNITS = 10_000


def measure(seconds: float) -> list[Row]:
    """As often as fits into `seconds`, the quickest of them."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        made = make_root(root, UNITS)
        took: list[float] = []
        begin = time.monotonic()
        while not took or time.monotonic() - begin < seconds:
            start = time.monotonic()
            audit = examine(root)
            took.append(time.monotonic() - start)
        rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        return [
            Row("audit of a root directory", f"{min(took):.2f} s", f"{audit.units:,} units, {made:,} files and links"),
            Row("findings in it", f"{len(audit.findings):,}", "one of four enabled services is endless"),
            Row("memory of the process", f"{rss_mb:.0f} MB", ""),
        ]


def make_root(root: Path, units: int) -> int:
    """Files and links that were made."""
    vendor, own = root / "usr/lib/systemd/system", root / "etc/systemd/system"
    wants = own / "multi-user.target.wants"
    for directory in (vendor, wants, root / "usr/bin"):
        directory.mkdir(parents=True)
    (root / "etc/machine-id").write_text("5d41402abc4b2a76b9719d911017c592\n")
    program = root / "usr/bin/agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    made = 2
    for number in range(units):
        name = f"unit-{number:05}.service"
        delay = "10s" if number % 4 == 0 else "100ms"
        text = f"[Unit]\nDescription=number {number}\n[Service]\nExecStart=/usr/bin/agent {number}\nRestart=always\n"
        (vendor / name).write_text(f"{text}RestartSec={delay}\n[Install]\nWantedBy=multi-user.target\n")
        made += 1
        if number % 2 == 0:
            (wants / name).symlink_to(f"/usr/lib/systemd/system/{name}")
            made += 1
        if number % 10 == 0:
            (own / f"{name}.d").mkdir()
            (own / f"{name}.d/10-own.conf").write_text("[Unit]\nStartLimitBurst=4\n")
            made += 1
    return made
