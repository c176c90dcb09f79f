"""Tests that may be tried again when they fail: those of tests/quarantine.txt, each with its reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

FILE = Path(__file__).parents[1] / "quarantine.txt"
TRIES = 3
_LINE = re.compile(r"(tests/\S+\.py::\S+)  # reason: (.{20,})")


def read(text: str) -> dict[str, str]:
    """Test -> reason. A test without parameters means all of its parameters."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            fields = _LINE.fullmatch(line)
            if fields is None:
                raise ValueError(f"tests/quarantine.txt: not 'tests/FILE.py::TEST  # reason: REASON': {line!r}")
            found[fields[1]] = fields[2]
    return found


def run(item: pytest.Item, after: pytest.Item | None, reasons: dict[str, str]) -> bool:
    """Whether this test is in quarantine; then it was run, until it passed or had all its tries."""
    reason = reasons.get(item.nodeid) or reasons.get(item.nodeid.partition("[")[0])
    if reason is None:
        return False
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for _ in range(TRIES):
        reports = runtestprotocol(item, nextitem=after, log=False)
        if not any(report.failed for report in reports):
            break
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
