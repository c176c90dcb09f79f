"""A crash loop is one, and a queue of jobs is none."""

from __future__ import annotations

from typing import Any

import pytest

from zombiescope.base.time import MINUTE_US, SECOND_US
from zombiescope.query.container_families import exit_words, families, loops
from zombiescope.query.containers import Container

JOB = Container("", name="job", image="job:1", namespace="ci", runtime="containerd")


def _anew(count: int, every_s: float, code: int | None, lives_s: float = 1.0, **known: object) -> list[Container]:
    """A new id each time."""
    made = []
    for number in range(count):
        start = round(number * every_s * SECOND_US) + 1
        end = start + round(lives_s * SECOND_US)
        given: dict[str, Any] = {
            key: str(value).format(number, "bcdfghjklmnpqrstvwxz"[number % 20]) for key, value in known.items()
        }
        one = JOB._replace(id=f"{number:064x}", started_us=start, exited_us=end, code=code, at_us=end, **given)
        made.append(one._replace(starts=1, first_us=start, runs=1))
    return made


def _kinds(found: list[Container]) -> list[str]:
    return [loop.kind for loop in loops(families(found))]


@pytest.mark.parametrize(
    "healthy",
    [
        _anew(30, 60, 0, pod="clean-{}-x2kqz", pod_uid="u{}"),  # a CronJob every minute
        _anew(30, 60, 0, name="backup"),  # cron and docker run --name
        _anew(400, 0.6, 0, 30, pod="train-{}-x2kqz", pod_uid="u{}"),  # a Job of 400 pods
        _anew(60, 20, 0, 120, name="runner-{}", requester="gitlab-runner"),  # CI
        [*_anew(60, 20, 0, 120, requester="ci", name="r{}"), *_anew(9, 70, 1, requester="ci", name="f{}")],  # some fail
        _anew(4, 10, 1, name="try{}", requester="bash"),  # somebody tries a few times
        _anew(8, 1800, 1, pod="nightly-{}-x2kqz", pod_uid="u{}"),  # fails, but twice an hour
        [JOB._replace(id="a", started_us=1, at_us=1, restarts=7)],  # was restarted long ago
        [JOB._replace(id="a", started_us=1, at_us=1, starts=2, first_us=1)],  # restarted once
    ],
)
def test_healthy_work_is_no_loop(healthy: list[Container]) -> None:
    assert _kinds(healthy) == []


@pytest.mark.parametrize(
    ("looping", "kind"),
    [
        (_anew(20, 3, 1, name="quirky_einstein{}", requester="agent-loop"), "failing"),
        (_anew(6, 290, 2, pod="crash-7d4b9c6f5-x2k{1}z", pod_uid="u{}"), "failing"),  # a controller makes new pods
        (_anew(6, 10, 2, pod="crash-7d4b9c6f5-x2kqz", pod_uid="u"), "in place"),  # kubelet, in one pod
        (_anew(6, 10, 0, pod="done-7d4b9c6f5-x2kqz", pod_uid="u"), "in place"),  # ends with 0, is started again
        ([JOB._replace(id="a", started_us=1, starts=25, restarts=25)], "in place"),  # a restart policy
        ([JOB._replace(id="a", started_us=1, starts=1, restarts=41)], "in place"),  # after back-off, once in the window
        (_anew(20, 3, None, name="n{}", requester="agent-loop"), "quick"),  # --rm: nobody saw the code
        (_anew(20, 3, 0, name="agent"), "quick"),  # one name, faster than cron
    ],
)
def test_what_is_started_for_ever_is_a_loop(looping: list[Container], kind: str) -> None:
    assert _kinds(looping) == [kind]


def test_the_words_say_who_asked_how_often_and_how_it_ended() -> None:
    (loop,) = loops(families(_anew(20, 3, 137, name="n{}", requester="agent-loop", requester_unit="ecs.service")))
    assert loop.text() == (
        "20 containers of job:1 were started by agent-loop (ecs.service), one every 3.0 s, 20 failed, the last with "
        "137 (SIGKILL)"
    )
    (loop,) = loops(families([JOB._replace(id="a", starts=3, restarts=41, first_us=1, started_us=1 + 10 * MINUTE_US)]))
    assert loop.text() == "job was started 3 times, one every 5 min, 41 restarts so far"


@pytest.mark.parametrize(("code", "words"), [(0, "0"), (1, "1"), (143, "143 (SIGTERM)"), (255, "255"), (-1, "-1")])
def test_an_exit_code_is_read_as_a_signal_where_it_is_one(code: int, words: str) -> None:
    assert exit_words(code) == words
