"""When the doctor is called: what is suspicious, when it looks, and when not again."""

from __future__ import annotations

import pytest

from zombiescope.recorder.alarm import FIRST_LOOK_US, OVER_US, Alarm

AT = 1_000_000_000


def test_a_quiet_machine_is_not_looked_at() -> None:
    alarm = Alarm()
    alarm.core(AT, 0, 1_000_000, 400)
    alarm.unit(AT, "x.service", 50, 99)
    alarm.real_time(AT, "audio", 40, 99)
    alarm.quota(AT, "/pod", 100, 5)
    alarm.quota(AT, "/free", 0, 0)
    assert not alarm.due(AT + 10_000_000)


@pytest.mark.parametrize("suspect", ["core", "unit", "real_time", "quota"])
def test_a_suspicion_is_looked_at_once_it_has_lasted(suspect: str) -> None:
    alarm = Alarm()
    arguments = {
        "core": (0, 1_000_000, 990),
        "unit": ("x.service", 95, 99),
        "real_time": ("fifo", 95, 99),
        "quota": ("/pod", 100, 90),
    }[suspect]
    getattr(alarm, suspect)(AT, *arguments)
    assert not alarm.due(AT + 1_000_000)
    assert alarm.due(AT + FIRST_LOOK_US)
    assert not alarm.due(AT + FIRST_LOOK_US + 1_000_000)
    assert alarm.due(AT + OVER_US), "once more when it is over"
    assert alarm.since_us is None
