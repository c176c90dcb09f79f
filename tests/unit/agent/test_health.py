"""A service's condition, and the part that is derived of it: a beat that was promised and does not come is a hang."""

from __future__ import annotations

from typing import get_args

import pytest

from zombiescope.agent.health import MARGIN_S, PART_STATES, Health, State
from zombiescope.store import health
from zombiescope.store.health import Part


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def begun(state: State = "ok") -> tuple[Health, Clock]:
    clock = Clock()
    own = Health(lambda _: None, clock)
    own.say("webhook", state)
    own.beat("webhook", 2.0)
    return own, clock


def part(own: Health) -> Part:
    (found,) = own.parts()
    return found


def test_every_state_of_a_service_is_one_of_a_part() -> None:
    assert set(PART_STATES) == set(get_args(State))
    assert set(PART_STATES.values()) < set(health.STATES)


@pytest.mark.parametrize("state", get_args(State))
def test_a_service_is_a_part_of_that_state(state: State) -> None:
    own, _ = begun()
    own.say("webhook", state, "why it is so")
    assert part(own).state == PART_STATES[state]
    said = {"ok": "", "failed": "failed: why it is so", "degraded": "is degraded: why it is so"}
    assert part(own).why == said.get(state, "why it is so")


def test_a_beat_that_does_not_come_is_a_hang_within_ten_seconds() -> None:
    own, clock = begun()
    clock.now += 2.0 + MARGIN_S - 0.1
    assert part(own).state == "ok"
    clock.now += 0.2
    assert part(own).state == "hung"
    assert part(own).why == "has done nothing for 5 s"
    assert clock.now - 1000.0 + health.EVERY_S < 10
    own.beat("webhook", 2.0)
    assert part(own).state == "ok"


@pytest.mark.parametrize("state", ["failed", "off"])
def test_nobody_waits_for_a_beat_of_a_service_that_does_not_run(state: State) -> None:
    own, clock = begun()
    own.say("webhook", state, "why")
    clock.now += 1000
    assert part(own).state == state


def test_a_process_that_did_not_run_blames_no_service() -> None:
    own, clock = begun()
    clock.now += 100
    own.excuse(100)
    assert part(own).state == "ok"
    clock.now += 10
    assert part(own).state == "hung"


def test_what_it_did_and_why_it_failed_last_stay_known() -> None:
    own, _ = begun()
    own.worked("webhook", 3)
    own.say("webhook", "failed", "no luck")
    own.say("webhook", "failed", "no luck")
    own.say("webhook", "degraded", "the peer is away")
    own.say("webhook", "ok")
    found = part(own)
    assert (found.state, found.work, found.failures, found.why) == ("ok", 3, 2, "failed: no luck")
    assert found.last_success is not None
