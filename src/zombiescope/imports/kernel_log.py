"""A kernel log that somebody saved: the lines that mean something become events, as the recorder makes them.

    [12612.193516] text                              dmesg; seconds since boot
    <4>[12612.193516] text                           dmesg -r, with the level
    kern  :warn  : [12612.193516] text               dmesg -x
    [Sun Nov 15 11:46:46 2026] text                  dmesg -T; local time
    2026-11-15T11:46:46,193516+00:00 text            dmesg --time-format iso
    Nov 15 11:46:46 node1 kernel: text               journalctl, /var/log/kern.log; no year, local time
    2026-11-15T11:46:46+0000 node1 kernel: text      journalctl -o short-iso, rsyslog
    [12612.193516] node1 kernel: text                journalctl -o short-monotonic
    {"__REALTIME_TIMESTAMP": "...", "MESSAGE": ...}  journalctl -o json

Seconds since boot become Unix time with the clock of a profile that was imported beside it, which perf takes from the
same clock; alone, the last line is taken to be as old as the file. Of a journal, systemd's lines about restarts are
taken too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base import text as _text
from zombiescope.imports.clock import MONTHS
from zombiescope.imports.rows import ImportReport
from zombiescope.kernel.kmsg import KmsgRecord
from zombiescope.kernel.log_flood import FloodGuard
from zombiescope.kernel.log_formats import LogEvent, event_of
from zombiescope.store.event import Event

_LEVELS = {"emerg": 0, "alert": 1, "crit": 2, "err": 3, "warn": 4, "notice": 5, "info": 6, "debug": 7}

_LATEST_US = 1 << 53

_PREFIX = re.compile(r"<(?P<prio>\d{1,4})>|(?P<facility>[a-z0-9]{2,10}) *:(?P<level>[a-z]{3,6}) *: ")
_BOOT = re.compile(r"\[ *(?P<seconds>\d{1,12})\.(?P<micros>\d{6})(?: <[^>]{1,24}>)?\](?:\[ *[TC]\d{1,10}\])? ")
_CTIME = re.compile(r"\[\w{3} (?P<month>\w{3}) +(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d) (?P<year>\d{4})\] ")
_ISO = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)? "
)
_SHORT = re.compile(r"(?P<month>\w{3}) +(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d{1,6}))? ")
_WRITER = re.compile(r"(?P<host>[\w.-]{1,253}) (?P<program>[^\s:\[]{1,64})(?:\[(?P<pid>\d{1,10})\])?: ")
_RESTART = re.compile(r"(?P<unit>\S{1,255}): Scheduled restart job, restart counter is at (?P<count>\d{1,9})\.")
_FAILED = re.compile(r"(?P<unit>\S{1,255}): Failed with result '(?P<result>[a-z-]{1,40})'\.")


@dataclass(frozen=True, slots=True)
class LogLine:
    """`boot_us` is seconds since boot, `wall_us` Unix time: a line has one of them."""

    boot_us: int | None
    wall_us: int | None
    record: KmsgRecord
    program: str = "kernel"
    host: str | None = None


def parse(line: str, modified_us: int | None = None) -> LogLine | None:
    """One line in any of the forms; None for one that carries no time."""
    if line.startswith("{"):
        return _json_line(line)
    level, facility, line = _level(line)
    boot_us, wall_us, text = _time(line, modified_us)
    if boot_us is None and wall_us is None:
        return None
    host, program = None, "kernel"
    writer = _WRITER.match(text)
    if writer is not None and (wall_us is not None or writer["program"] in ("kernel", "systemd")):
        host, program, text = writer["host"], writer["program"], text[writer.end() :]
        facility = 0 if program == "kernel" else 3
        if inner := _BOOT.match(text):  # rsyslog leaves the kernel's own stamp in
            text = text[inner.end() :]
    return LogLine(boot_us, wall_us, KmsgRecord(level, facility, None, boot_us, text), program, host)


def is_line(line: str) -> bool:
    """Whether a line looks like one of a kernel log or a journal."""
    if line.startswith("{"):
        return '"MESSAGE"' in line or '"__REALTIME_TIMESTAMP"' in line
    found = parse(line)
    return found is not None and (found.boot_us is not None or found.host is not None or line.startswith("["))


def _level(line: str) -> tuple[int | None, int | None, str]:
    prefix = _PREFIX.match(line)
    if prefix is None:
        return None, None, line
    rest = line[prefix.end() :]
    if prefix["prio"] is not None:
        return int(prefix["prio"]) & 7, int(prefix["prio"]) >> 3, rest
    return _LEVELS.get(prefix["level"]), 0 if prefix["facility"] == "kern" else 1, rest


def _time(line: str, modified_us: int | None) -> tuple[int | None, int | None, str]:
    """(microseconds since boot, Unix microseconds, the rest)."""
    if found := _BOOT.match(line):
        return int(found["seconds"]) * 1_000_000 + int(found["micros"]), None, line[found.end() :]
    if found := (_CTIME.match(line) or _ISO.match(line) or _SHORT.match(line)):
        return None, _wall_us(found.groupdict(), modified_us), line[found.end() :]
    return None, None, line


def _wall_us(said: dict[str, str | None], modified_us: int | None) -> int | None:
    month = str(said["month"])
    number = int(month) if month.isdecimal() else MONTHS.index(month) + 1 if month in MONTHS else 0
    hour, minute, second = (int(part) for part in str(said["time"]).split(":"))
    fields = (number, int(said["day"] or 0), hour, minute, second)
    fraction_us = int((said.get("fraction") or "").ljust(6, "0")[:6])
    zone = said.get("zone")
    if said.get("year"):
        at = _unix_s(int(said["year"] or 0), fields, zone)
    else:  # the last such day that is not after the file itself
        until = (modified_us / 1e6 if modified_us is not None else time.time()) + 86400
        year = time.localtime(until).tm_year
        found = (_unix_s(each, fields, zone) for each in (year, year - 1))
        at = next((each for each in found if each is not None and each <= until), None)
    return None if at is None else at * 1_000_000 + fraction_us


def _unix_s(year: int, fields: tuple[int, ...], zone: str | None) -> int | None:
    month, day, hour, minute, second = fields
    if not (1990 <= year < 2200 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    if zone is None:
        return int(time.mktime((year, month, day, hour, minute, second, 0, 0, -1)))
    import calendar

    offset_s = 0 if zone == "Z" else int(f"{zone[0]}1") * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)
    return calendar.timegm((year, month, day, hour, minute, second)) - offset_s


def _json_line(line: str) -> LogLine | None:
    try:
        entry = _json.loads(line)
        message, wall_us = entry["MESSAGE"], int(entry["__REALTIME_TIMESTAMP"])
        # A message that is not UTF-8 is a list of its bytes; half of a surrogate pair is no text either.
        data = bytes(message) if isinstance(message, list) else str(message).encode("utf-8", "backslashreplace")
        text = data.decode("utf-8", "backslashreplace")
    except (ValueError, KeyError, TypeError):
        return None
    if not 0 <= wall_us < _LATEST_US:
        return None
    kernel = entry.get("_TRANSPORT") == "kernel"
    program = "kernel" if kernel else str(entry.get("SYSLOG_IDENTIFIER", ""))
    record = KmsgRecord(_number(entry.get("PRIORITY")), _number(entry.get("SYSLOG_FACILITY")), None, None, text)
    host = entry.get("_HOSTNAME")
    return LogLine(None, wall_us, record, program, host if isinstance(host, str) else None)


def _number(value: Any) -> int | None:
    return _text.number(value) if isinstance(value, str) else None


def host_in(text: str) -> str | None:
    """The host that a journal names."""
    found = (parse(line) for line in text.splitlines()[:20])
    return next((line.host for line in found if line is not None and line.host), None)


def read(text: str, modified_us: int | None, boot_offset_us: int | None, outcome: ImportReport) -> list[Event]:
    """The events of a log in the order of its lines."""
    lines = []
    for line in text.splitlines():
        found = parse(line, modified_us) if line.strip() else None
        if found is not None:
            lines.append(found)
        elif line.strip() and not line.startswith("-- "):  # journalctl's own: "-- Boot 3f..."
            outcome.skipped["lines of a kernel log that carry no time"] += 1
    offset_us = _boot_offset_us(lines, modified_us, boot_offset_us, outcome)
    return list(_events(lines, offset_us))


def _boot_offset_us(
    lines: list[LogLine], modified_us: int | None, boot_offset_us: int | None, outcome: ImportReport
) -> int:
    last_us = max((line.boot_us for line in lines if line.boot_us is not None), default=None)
    if any(line.wall_us is not None for line in lines):
        outcome.note("kernel log: times without a zone are taken as local time of this machine")
    if last_us is None:
        return 0
    if boot_offset_us is not None:
        outcome.note("kernel log: seconds since boot became wall clock by the profile's clock")
        return boot_offset_us
    if modified_us is None:
        outcome.note("kernel log: when the node was booted is not known; its last line is assumed to be from now")
        return round(time.time() * 1e6) - last_us
    outcome.note("kernel log: when the node was booted is not known; its last line is assumed to be as old as the file")
    return modified_us - last_us


def _events(lines: list[LogLine], offset_us: int) -> Iterator[Event]:
    guard = FloodGuard()
    time_us = 0
    for line in lines:
        time_us = line.wall_us if line.wall_us is not None else (line.boot_us or 0) + offset_us
        found = event_of(line.record, "import") if line.program == "kernel" else _of_systemd(line)
        if found is not None:
            yield from (_stored(event, time_us) for event in guard.admit(found, time_us * 1000))
    yield from (_stored(event, time_us) for event in guard.flush(1 << 62))


def _of_systemd(line: LogLine) -> LogEvent | None:
    if line.program != "systemd":
        return None
    if found := _RESTART.match(line.record.text):
        fields: dict[str, str | int] = {"unit": found["unit"], "n_restarts": int(found["count"]), "delta": 1}
        return LogEvent("unit_restart", "warning", "import", line.record.text, fields)
    if found := _FAILED.match(line.record.text):
        return LogEvent("unit_failed", "warning", "import", line.record.text, found.groupdict())
    return None


def _stored(event: LogEvent, time_us: int) -> Event:
    fields = {**event.fields, "line": event.known} if event.known else dict(event.fields)
    return Event(time_us, event.kind, event.source, event.severity, event.text, fields)
