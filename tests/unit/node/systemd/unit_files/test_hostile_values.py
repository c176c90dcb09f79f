"""What nobody writes by accident: thousands of digits, steps of next to nothing, lines and lists without an end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from zombiescope.node.systemd import unit_files
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files import exit_status, names
from zombiescope.node.systemd.unit_files.calendar import calendar_runs_per_day, repeats
from zombiescope.node.systemd.unit_files.timespan import parse_us

MANY = "9" * 10_000
Read = Callable[[str], object]


@pytest.mark.parametrize(
    "read", [parse_us, lambda text: parse_us(f"1.{text}s"), lambda text: exit_status.parse([text])]
)
def test_thousands_of_digits_are_no_number(read: Read) -> None:
    read(MANY)


def test_a_fraction_is_as_exact_as_a_microsecond() -> None:
    assert parse_us("1.5s") == parse_us("1." + "5" + "0" * 10_000 + "s") == 1_500_000


def test_a_unit_and_the_manager_with_such_numbers(tmp_path: Path) -> None:
    place = tmp_path / "etc" / "systemd"
    (place / "system").mkdir(parents=True)
    (place / "system.conf").write_text(f"[Manager]\nDefaultStartLimitBurst={MANY}\n")
    (place / "system" / "a.service").write_text(f"[Unit]\nStartLimitBurst={MANY}\n[Service]\nRestartSteps={MANY}\n")
    with Root(tmp_path) as root:
        found = unit_files.read(root).service("a.service")
    assert found is not None
    assert (found.burst, found.restart_steps) == (5, 0)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "expression", ["*:0..59/1e-300", "*:0..59/0.000001", "*:inf..inf", "*:inf", "*:0/nan", "*:0..9999/0.1"]
)
def test_a_calendar_is_counted_in_bounded_time(expression: str) -> None:
    calendar_runs_per_day(expression)


@pytest.mark.parametrize("line", ["\\", "OnCalendar=daily", "Wants=a.service", "Wants=", "x"])
def test_a_file_costs_no_more_than_its_length(line: str, tmp_path: Path) -> None:
    place = tmp_path / "etc" / "systemd" / "system"
    place.mkdir(parents=True)

    def cost(size: int) -> float:
        (place / "a.timer").write_text(f"[Unit]\nWants=b.service\n[Timer]\nOnCalendar=a{line}\n" + f"{line}\n" * size)
        best = float("inf")
        for _ in range(3):
            with Root(tmp_path) as root:
                files = unit_files.read(root)
                start = time.thread_time()
                unit = files.unit("a.timer")
                assert unit is not None
                repeats(unit)
                unit.listed("Timer", "Wants")
                best = min(best, time.thread_time() - start)
        return best

    assert cost(50_000) < 40 * cost(5_000) + 0.02


def test_a_name_of_many_parts_is_cut_down_one_by_one() -> None:
    shared = names.sharing("a-" * 5000 + "b@x.service")
    assert len(shared) == len(set(shared)) < 20_000
