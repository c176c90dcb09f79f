"""Names, lines, lists, spans and calendars, where no systemd is at hand to compare with."""

from __future__ import annotations

import re
import subprocess
from datetime import datetime

import pytest
from tests.conftest import Needs

from zombiescope.node.systemd.unit_files import exit_status, names, syntax
from zombiescope.node.systemd.unit_files.calendar import calendar_runs_per_day
from zombiescope.node.systemd.unit_files.timespan import INFINITY, human, parse_us


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("ssh.service", True),
        ("foo@bar.service", True),
        ("foo@.timer", True),
        ("dev-disk-by\\x2dlabel.swap", True),
        ("a b.service", False),
        ("ssh.servic", False),
        ("@x.service", False),
        (".service", False),
        ("x" * 250 + ".service", False),
        ("naïve.service", False),
        ("ssh.service\n", False),
    ],
)
def test_which_names_are_units(name: str, valid: bool) -> None:
    assert names.is_valid(name) == valid


def test_names_that_share_drop_ins() -> None:
    assert names.sharing("a-b-c.service") == ["a-b-c.service", "a-b-.service", "a-.service"]
    assert names.sharing("a-b@x.service")[:2] == ["a-b@x.service", "a-b@.service"]
    assert "a-@x.service" in names.sharing("a-b@x.service")
    assert names.sharing("plain.service") == ["plain.service"]


def test_lines_are_counted_from_where_they_begin() -> None:
    data = b"# one\n[Service]\nExecStart=/bin/a \\\n# left out\n  --flag\nRestart=always\n\n[Install]\nAlias=x.service"
    found = [(item.section, item.key, item.value, item.line) for item in syntax.parse(data, "/u")]
    assert found == [
        ("Service", "ExecStart", "/bin/a  --flag", 3),
        ("Service", "Restart", "always", 6),
        ("Install", "Alias", "x.service", 9),
    ]


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\0", bytes(range(256)) * 10, b"\\", b"[", b"=\n==", b"a\\\n" * 1000, b"[S]\nk=\xff"]
)
def test_what_is_no_unit_file_is_survived(data: bytes) -> None:
    for item in syntax.parse(data, "/u"):
        assert item.key


def test_lists() -> None:
    assert syntax.words("a  'b c' \"d\" e\\ f") == ["a", "b c", "d", "e\\ f"]
    assert syntax.words("  ") == []


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("5", 5_000_000), ("100ms", 100_000), ("5min 20s", 320_000_000), ("1h30min", 5_400_000_000), ("0", 0),
        ("1.5s", 1_500_000), ("infinity", INFINITY), ("", None), ("soon", None), ("-1", None), ("5 parsec", None),
        ("9" * 30, None), ("2 weeks", 1_209_600_000_000), ("3us", 3),
    ],
)  # fmt: skip
def test_spans(text: str, us: int | None) -> None:
    assert parse_us(text) == us


@pytest.mark.parametrize("us", [0, 1, 100_000, 90_000_000, 5_400_000_000, INFINITY])
def test_a_span_that_is_shown_is_read_back(us: int) -> None:
    assert parse_us(human(us)) == us


def test_exit_statuses() -> None:
    found = exit_status.parse(["5", "255", "256", "TEMPFAIL", "SIGKILL", "TERM", "nonsense"])
    assert found.codes == {5, 255, 75}
    assert found.signals == {"SIGKILL", "SIGTERM"}


CALENDARS = (
    "minutely", "hourly", "daily", "weekly", "*:0/10", "*:*:0/30", "Mon..Fri *-*-* 06:00", "*-*-* 06,18:00",
    "Mon,Thu 12:00", "*:00/15", "00:07:00", "*-*-* 00/6:00", "Sun 03:10", "*-*-1..7 1:00", "*-*-* *:00,30:00",
    "Sat,Sun 10:00 Europe/Berlin", "*:*:*", "12:00:00/20", "monthly",
)  # fmt: skip


@pytest.mark.parametrize("expression", CALENDARS)
def test_a_calendar_fires_as_often_as_systemd_says(expression: str, needs: Needs) -> None:
    analyze = needs.binary("systemd-analyze", "systemd")
    command = [analyze, "calendar", "--iterations=200", "--base-time=2025-01-01 00:00:00 UTC", expression]
    environment = {"TZ": "UTC", "PATH": "/usr/bin:/bin"}
    text = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    stamps = re.findall(r"(?:elapse|Iter(?:ation|\.) #\d+): \w+ (\d+-\d+-\d+ \d+:\d+:\d+)", text)
    times = [datetime.fromisoformat(stamp) for stamp in stamps]
    days = (times[-1] - times[0]).total_seconds() / 86400
    assert calendar_runs_per_day(expression) == pytest.approx((len(times) - 1) / days, rel=0.02)


@pytest.mark.parametrize("expression", ["", "whenever", "25", "*:*:*:*", "*:x", "Fri..Mon 1:00", "*-*-* 0/0:00"])
def test_what_is_no_calendar(expression: str) -> None:
    assert calendar_runs_per_day(expression) is None
