"""`mpstat -P ALL -o JSON 1`: how busy each core was, by hand.

    {"sysstat": {"hosts": [{"nodename": ..., "date": "11/15/26", "statistics": [{"timestamp": "11:52:47",
        "cpu-load": [{"cpu": "0", "usr": 49.02, ..., "idle": 40.20}]}]}]}}

Dates are written in the form of the locale (with S_TIME_FORMAT=ISO as 2026-11-15), times without a zone, to the second;
this machine's zone is taken. mpstat that was killed leaves the document without its end: what is whole is read.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

from zombiescope.imports.rows import ImportReport
from zombiescope.store import schema

_DAY_S = 86400
_MODES = {
    "user": ("usr", "guest"), "nice": ("nice", "gnice"), "system": ("sys",), "idle": ("idle",), "iowait": ("iowait",),
    "irq": ("irq",), "softirq": ("soft",), "steal": ("steal",), "guest": ("guest",), "guest_nice": ("gnice",),
}  # fmt: skip
"""mpstat keeps a guest's time out of usr; /proc/stat, and so the table, has it in."""
_CLOCK = re.compile(r"(\d{1,2}):(\d\d):(\d\d)(?: ?([AP])M)?")
_REST = (None,) * (len(schema.CORES.columns) - 3 - len(schema.CPU_MODES))
Row = tuple[Any, ...]
"""As schema.CORES."""


def host_in(text: str) -> str | None:
    """The name of the node."""
    found = re.search(r'"nodename":\s*"([^"]+)"', text)
    return None if found is None else found[1]


def read(text: str, modified_us: int | None, outcome: ImportReport) -> list[Row]:
    """Rows of the cores."""
    rows: list[Row] = []
    for host, reports in _hosts(text, outcome):
        day_s = _day_s(str(host.get("date", "")), modified_us, outcome)
        if isinstance(host.get("release"), str):
            outcome.facts.setdefault("kernel", host["release"])
        rows += _rows(reports, day_s, outcome)
    return rows


def _hosts(text: str, outcome: ImportReport) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    try:
        document = json.loads(text)  # no _json: hours of many cores are as long as a book, and only rows come of it
    except (ValueError, RecursionError):
        yield _of_the_whole_part(text, outcome)
        return
    try:
        hosts = [(dict(host), list(host["statistics"])) for host in document["sysstat"]["hosts"]]
    except (KeyError, TypeError, ValueError):
        outcome.skipped["mpstat documents of another form"] += 1
        return
    yield from hosts


def _of_the_whole_part(text: str, outcome: ImportReport) -> tuple[dict[str, Any], list[Any]]:
    """A document that ends early: the reports that are whole."""
    head, found, rest = text.partition('"statistics"')
    host = dict(re.findall(r'"(nodename|release|date)":\s*"([^"]*)"', head))
    reports: list[Any] = []
    decoder = json.JSONDecoder()
    at = rest.find("[") + 1 if found else len(rest)
    while (at := rest.find("{", at)) >= 0 and at < len(rest):
        try:
            report, at = decoder.raw_decode(rest, at)
        except (ValueError, RecursionError):
            break
        reports.append(report)
    outcome.skipped["reports of mpstat that are cut short"] += 1
    return host, reports


def _rows(reports: list[Any], day_s: int, outcome: ImportReport) -> list[Row]:
    timed: list[tuple[int, Any]] = []
    for report in reports:
        clock_s = _clock_s(report.get("timestamp") if isinstance(report, dict) else None)
        if clock_s is None or not isinstance(report.get("cpu-load"), list):
            outcome.skipped["reports of mpstat that cannot be read"] += 1
            continue
        at_s = day_s + clock_s
        while timed and at_s < timed[-1][0] - _DAY_S // 2:
            at_s += _DAY_S  # past midnight
        timed.append((at_s, report["cpu-load"]))
    rows: list[Row] = []
    for number, (at_s, loads) in enumerate(timed):
        rows += _cores(at_s, _interval_s([each for each, _ in timed], number), loads, outcome)
    return rows


def _interval_s(times: list[int], number: int) -> int:
    if len(times) < 2:
        return 1
    first = max(number, 1)
    return max(1, times[first] - times[first - 1])


def _cores(at_s: int, interval_s: int, loads: list[Any], outcome: ImportReport) -> Iterator[Row]:
    for load in loads:
        if not isinstance(load, dict) or not re.fullmatch(r"[0-9]{1,5}", str(load.get("cpu", ""))):
            if not isinstance(load, dict) or load.get("cpu") not in ("all", -1, "-1"):
                outcome.skipped["cores in mpstat reports that cannot be read"] += 1
            continue
        spent = [_ms(load, names, interval_s) for names in _MODES.values()]
        if any(spent):  # a core that is offline has zeros everywhere
            by_mode = dict(zip(_MODES, spent, strict=True))
            ordered = (by_mode[mode] for mode in schema.CPU_MODES)
            yield (at_s * 1_000_000, interval_s * 1_000_000, int(load["cpu"]), *ordered, *_REST)


def _ms(load: dict[str, Any], names: tuple[str, ...], interval_s: int) -> int | None:
    percentages = [_percentage(load.get(name)) for name in names]
    if percentages[0] is None:
        return None  # a version of sysstat that does not know this mode
    return round(sum(value or 0 for value in percentages) * interval_s * 10)


def _percentage(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and 0 <= value <= 1000 else None


def _clock_s(text: object) -> int | None:
    found = _CLOCK.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        return None
    hour, minute, second = int(found[1]), int(found[2]), int(found[3])
    if found[4] is not None:
        hour = hour % 12 + (12 if found[4] == "P" else 0)
    return hour * 3600 + minute * 60 + second


def _day_s(text: str, modified_us: int | None, outcome: ImportReport) -> int:
    """Unix time of midnight. Of a date that can be read in two ways, the one nearest to the file's own is meant."""
    now_s = modified_us / 1e6 if modified_us is not None else time.time()
    days = [day for day in (_midnight_s(*parts) for parts in _readings(text)) if day is not None]
    if not days:
        outcome.note("mpstat: its date cannot be read; the day on which the file was written is used")
        return _midnight_s(*time.localtime(now_s)[:3]) or 0
    outcome.note("mpstat: its times are taken as local time of this machine")
    return min(days, key=lambda day: abs(day - now_s))


def _readings(text: str) -> Iterator[tuple[int, int, int]]:
    numbers = [int(number) for number in re.findall(r"\d{1,4}", text)[:3]]
    if len(numbers) != 3:
        return
    if numbers[0] > 31:
        yield numbers[0], numbers[1], numbers[2]
        return
    year = numbers[2] + 2000 if numbers[2] < 100 else numbers[2]
    yield year, numbers[0], numbers[1]
    yield year, numbers[1], numbers[0]


def _midnight_s(year: int, month: int, day: int) -> int | None:
    if not (1990 <= year < 2200 and 1 <= month <= 12 and 1 <= day <= 31):
        return None
    try:
        return int(time.mktime((year, month, day, 0, 0, 0, 0, 0, -1)))
    except (OverflowError, ValueError):
        return None
