from __future__ import annotations

from zombiescope.kernel.log_flood import FloodGuard
from zombiescope.kernel.log_formats import LogEvent

MS = 1_000_000
SECOND = 1_000 * MS


def killed(pid: int, comm: str = "python3") -> LogEvent:
    text = f"Out of memory: Killed process {pid} ({comm})"
    return LogEvent("oom_kill", "critical", "kmsg", text, {"pid": pid, "comm": comm}, "oom.killed-global")


def plain(number: int) -> LogEvent:
    return LogEvent("kernel_log", "warning", "kmsg", f"line {number}")


def test_a_few_lines_pass_untouched() -> None:
    guard = FloodGuard()
    events = [killed(pid) for pid in range(5)]
    assert [e for event in events for e in guard.admit(event, 0)] == events
    assert guard.flush(2 * SECOND) == []


def test_a_flood_is_bounded_and_its_rest_is_told_in_one_event() -> None:
    # GIVEN 75 OOM kills a second for a minute
    guard = FloodGuard(per_second=20)
    stored: list[LogEvent] = []
    for number in range(4500):
        stored += guard.admit(killed(number), number * SECOND // 75)
    stored += guard.flush(62 * SECOND)
    # THEN no more than the bound and a sum are stored each second, and nothing is unaccounted for
    assert len(stored) <= 60 * 22
    sums = [event for event in stored if "held" in event.fields]
    held = sum(int(event.fields["held"]) for event in sums)
    assert held + len(stored) - len(sums) == 4500
    assert guard.held == held
    assert sums[0].text.startswith("and 55 more like it, the last: Out of memory: Killed process")
    assert (sums[0].kind, sums[0].severity) == ("oom_kill", "critical")


def test_kinds_do_not_take_room_from_each_other() -> None:
    guard = FloodGuard(per_second=2, log_per_second=3)
    for number in range(50):
        guard.admit(plain(number), number)
    assert guard.admit(killed(1), 51) == [killed(1)]


def test_the_first_of_each_critical_subject_always_passes() -> None:
    guard = FloodGuard(per_second=2)
    for pid in range(10):
        guard.admit(killed(pid), pid)
    assert guard.admit(killed(99, "raylet"), 20) == [killed(99, "raylet")]
    assert guard.admit(killed(100, "raylet"), 21) == []


def test_the_sum_comes_with_the_next_event_or_with_flush() -> None:
    guard = FloodGuard(log_per_second=1)
    for number in range(4):
        guard.admit(plain(number), 0)
    told = guard.admit(plain(4), SECOND)
    assert [event.text for event in told] == ["and 3 more like it, the last: line 3", "line 4"]
    assert guard.flush(3 * SECOND) == []


def test_a_thousand_subjects_do_not_break_the_bound() -> None:
    guard = FloodGuard(per_second=2)
    passed = sum(len(guard.admit(killed(n, f"job{n}"), n)) for n in range(1_000))
    assert passed == 256


def xid(code: int, gpu: str = "0000:81:00", comm: str = "python3") -> LogEvent:
    fields: dict[str, str | int] = {"gpu": gpu, "xid": code, "comm": comm}
    return LogEvent("gpu_xid", "critical", "kmsg", f"NVRM: Xid (PCI:{gpu}): {code}, ...", fields, "nvidia.xid")


def test_another_code_of_a_gpu_that_floods_the_log_is_not_lost_in_it() -> None:
    guard = FloodGuard(per_second=20)
    for _ in range(10_000):
        guard.admit(xid(95), 0)
    assert guard.admit(xid(79), 1) == [xid(79)]


def test_what_a_flood_held_back_is_told_for_each_code_of_each_gpu() -> None:
    guard = FloodGuard(per_second=2)
    for _ in range(100):
        for gpu in ("0000:81:00", "0000:82:00"):
            for code in (95, 31):
                guard.admit(xid(code, gpu), 0)
    held = {(one.fields["gpu"], one.fields["xid"]): one.fields["held"] for one in guard.flush(2 * SECOND)}
    assert len(held) == 4
    assert sum(map(int, held.values())) == guard.held
    assert min(map(int, held.values())) >= 98


def test_a_thousand_codes_and_gpus_are_told_in_a_bounded_number_of_events() -> None:
    guard = FloodGuard(per_second=0)
    for number in range(5_000):
        guard.admit(xid(number), 0)
    told = guard.flush(2 * SECOND)
    assert len(told) <= 64
    assert sum(int(one.fields["held"]) for one in told) == guard.held
