"""Kernel logs as people save them."""

from __future__ import annotations

import json

import pytest

from zombiescope.imports import kernel_log
from zombiescope.imports.rows import ImportReport
from zombiescope.store.event import Event

LOCKUP = "watchdog: BUG: soft lockup - CPU#30 stuck for 23s! [kubelet:810499]"
AT = 1794743206_000000
"""2026-11-15 11:46:46 UTC."""


def read(
    text: str, boot_offset_us: int | None = None, modified_us: int | None = AT + 60_000_000
) -> tuple[list[Event], ImportReport]:
    outcome = ImportReport()
    return kernel_log.read(text, modified_us, boot_offset_us, outcome), outcome


@pytest.mark.parametrize(
    ("line", "time_us"),
    [
        (f"[12612.193516] {LOCKUP}", AT),
        (f"<0>[12612.193516] {LOCKUP}", AT),
        (f"kern  :emerg : [12612.193516] {LOCKUP}", AT),
        (f"[12612.193516 <    4.533214>] {LOCKUP}", AT),
        (f"[12612.193516][   T77] {LOCKUP}", AT),
        (f"[12612.193516] node1 kernel: {LOCKUP}", AT),
        (f"[Sun Nov 15 11:46:46 2026] {LOCKUP}", AT),
        (f"2026-11-15T11:46:46,193516+00:00 {LOCKUP}", AT + 193516),
        (f"2026-11-15T12:46:46,193516+01:00 {LOCKUP}", AT + 193516),
        (f"Nov 15 11:46:46 node1 kernel: {LOCKUP}", AT),
        (f"Nov 15 11:46:46.193516 node1 kernel: {LOCKUP}", AT + 193516),
        (f"Nov 15 11:46:46 node1 kernel: [12612.193516] {LOCKUP}", AT),
        (f"2026-11-15T11:46:46+0000 node1 kernel: {LOCKUP}", AT),
        (f"2026-11-15T11:46:46.193516Z node1 kernel: {LOCKUP}", AT + 193516),
    ],
)
def test_each_form(line: str, time_us: int, utc: None) -> None:
    (event,), outcome = read(f"{line}\n", boot_offset_us=AT - 12612193516)
    assert (event.at_us, event.kind, event.severity) == (time_us, "soft_lockup", "critical")
    assert (event.fields["cpu"], event.fields["comm"]) == (30, "kubelet")
    assert not outcome.skipped


def test_a_journal_as_json() -> None:
    entry = {
        "__REALTIME_TIMESTAMP": str(AT),
        "MESSAGE": LOCKUP,
        "_TRANSPORT": "kernel",
        "PRIORITY": "0",
        "SYSLOG_FACILITY": "0",
    }
    (event,), _ = read(json.dumps(entry) + "\n{broken\n")
    assert (event.at_us, event.kind) == (AT, "soft_lockup")


def test_restarts_are_in_a_journal(utc: None) -> None:
    text = (
        "Nov 15 11:46:46 node1 systemd[1]: ecs.service: Scheduled restart job, restart counter is at 4711.\n"
        "Nov 15 11:46:47 node1 systemd[1]: ecs.service: Failed with result 'exit-code'.\n"
        "Nov 15 11:46:47 node1 systemd[1]: Started something else.\n"
        "Nov 15 11:46:47 node1 sshd[99]: watchdog: BUG: soft lockup - CPU#30 stuck for 23s! [kubelet:810499]\n"
    )
    events, _ = read(text)
    assert [(event.kind, event.fields["unit"]) for event in events] == [
        ("unit_restart", "ecs.service"),
        ("unit_failed", "ecs.service"),
    ]
    assert events[0].fields["n_restarts"] == 4711


def test_without_another_clock_the_last_line_is_as_old_as_the_file() -> None:
    events, outcome = read(f"[  100.000000] {LOCKUP}\n[  160.000000] ordinary\n")
    assert events[0].at_us == AT
    assert any("as old as the file" in note for note in outcome.notes)


def test_the_year_that_is_missing_is_the_one_before_the_file(utc: None) -> None:
    events, _ = read(f"Dec 31 23:59:59 node1 kernel: {LOCKUP}\n", modified_us=1798761660_000000)  # 2027-01-01 00:01
    assert events[0].at_us == 1798761599_000000


def test_lines_without_a_time_are_counted_and_a_flood_is_summed() -> None:
    text = "no time here\n" + "".join(
        f"[  100.00{at:04}] TCP: request_sock_TCP: Possible SYN flooding on port {at}. Sending cookies.\n"
        for at in range(200)
    )
    events, outcome = read(text)
    assert outcome.skipped == {"lines of a kernel log that carry no time": 1}
    assert len(events) < 200


def test_what_a_process_wrote_is_no_event_of_the_kernel() -> None:
    events, _ = read(f"<12>[  100.000000] {LOCKUP}\n")
    assert [event.kind for event in events] == ["kernel_log"]
