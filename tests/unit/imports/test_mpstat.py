"""mpstat's JSON: how busy each core was, by hand."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from tests.conftest import Needs

from zombiescope.imports import mpstat
from zombiescope.imports.rows import ImportReport
from zombiescope.store import schema

DAY = 1794700800
"""2026-11-15 00:00 UTC."""


def load(cpu: str, **percent: float) -> dict[str, Any]:
    names = ("usr", "nice", "sys", "iowait", "irq", "soft", "steal", "guest", "gnice", "idle")
    return {"cpu": cpu, **{name: percent.get(name, 0.0) for name in names}}


def document(*reports: tuple[str, list[dict[str, Any]]], date: str = "11/15/26") -> str:
    statistics = [{"timestamp": at, "cpu-load": loads} for at, loads in reports]
    host = {"nodename": "n7", "release": "6.1", "number-of-cpus": 2, "date": date, "statistics": statistics}
    return json.dumps({"sysstat": {"hosts": [host]}}, indent=1)


def read(text: str) -> tuple[list[dict[str, Any]], ImportReport]:
    outcome = ImportReport()
    rows = mpstat.read(text, (DAY + 50_000) * 1_000_000, outcome)
    return [dict(zip(schema.CORES.names, row, strict=True)) for row in rows], outcome


def test_a_row_for_each_core_and_report(utc: None) -> None:
    busy, idle = load("0", usr=50, sys=25, soft=15, guest=10), load("1", idle=100)
    rows, outcome = read(document(("11:52:47", [load("all"), busy, idle]), ("11:52:49", [busy, idle])))
    assert [(row["time"], row["cpu"], row["interval_us"]) for row in rows] == [
        ((DAY + 42767) * 1_000_000, 0, 2_000_000), ((DAY + 42767) * 1_000_000, 1, 2_000_000),
        ((DAY + 42769) * 1_000_000, 0, 2_000_000), ((DAY + 42769) * 1_000_000, 1, 2_000_000),
    ]  # fmt: skip
    # A guest's time is in user, as /proc/stat has it.
    assert (rows[0]["user_ms"], rows[0]["system_ms"], rows[0]["softirq_ms"], rows[0]["guest_ms"]) == (
        1200,
        500,
        300,
        200,
    )
    assert (rows[1]["idle_ms"], rows[1]["samples"]) == (2000, None)
    assert not outcome.skipped


def test_midnight_and_the_forms_of_a_date(utc: None) -> None:
    for date in ("11/15/26", "15/11/26", "2026-11-15", "15.11.2026"):
        rows, _ = read(document(("11:59:59 PM", [load("0", usr=1)]), ("12:00:00 AM", [load("0", usr=1)]), date=date))
        assert [row["time"] // 1_000_000 for row in rows] == [DAY + 86399, DAY + 86400]


def test_a_document_without_its_end(utc: None) -> None:
    whole = document(
        ("11:52:47", [load("0", usr=10)]), ("11:52:48", [load("0", usr=20)]), ("11:52:49", [load("0", usr=30)])
    )
    rows, outcome = read(whole[: whole.rindex('"usr"')])
    assert [row["user_ms"] for row in rows] == [100, 200]
    assert outcome.skipped == {"reports of mpstat that are cut short": 1}


def test_what_is_of_another_form_is_counted(utc: None) -> None:
    rows, outcome = read(document(("noon", []), ("11:52:48", [{"cpu": "x"}, load("3"), load("2", usr=1)])))
    assert [row["cpu"] for row in rows] == [2]
    assert outcome.skipped == {
        "reports of mpstat that cannot be read": 1,
        "cores in mpstat reports that cannot be read": 1,
    }
    assert read('{"sysstat": {}}') == ([], ImportReport(skipped=read('{"sysstat": {}}')[1].skipped))


def test_the_real_one(needs: Needs) -> None:
    needs.binary("mpstat", "sysstat")
    done = subprocess.run(["mpstat", "-P", "ALL", "-o", "JSON", "1", "1"], capture_output=True, text=True, check=True)
    outcome = ImportReport()
    rows = mpstat.read(done.stdout, None, outcome)
    assert rows
    assert mpstat.host_in(done.stdout)
    assert all(abs(row[0] / 1e6 - time.time()) < 3600 for row in rows)
    assert not outcome.skipped
