"""A look at the hog that no pattern explains says what it does, how sure that is and how bad; a look that does not fit
is told and proves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import FROM_S, SYSCALL, Scene

from zombiescope.diagnosis.closer_look import CloserLook, Followed, rate_text, sentence, unexplained
from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.incident import Cause, Incident, Link
from zombiescope.diagnosis.pattern import FALLBACK
from zombiescope.diagnosis.thresholds import CLOSER_LOOK_RECENT_US
from zombiescope.store.reader import open_recording

FROM_US = START_US + FROM_S * SECOND
AGENT = 1201
READS = " ".join((*SYSCALL, "__x64_sys_read", "ksys_read", "vfs_read", "seq_read_iter", "odd_seq_show"))
YIELDS = " ".join((*SYSCALL, "__x64_sys_sched_yield", "odd_sched"))


def scene(frames: str = READS) -> Scene:
    """agent holds core 1 in the kernel for six seconds, and nothing says why."""
    return Scene(kernel="6.8.0").hog(frames, comm="agent", cpu=1)


def looked(one: Scene, *calls: dict[str, Any], pid: int = AGENT, at_s: float = 3, **more: Any) -> None:
    begin = FROM_US + int(at_s * SECOND)
    who = {"time": begin + SECOND, "begin": begin, "pid": pid, "start_ticks": 5, "comm": "agent"}
    one.made.add("closer_looks", **who, **{"threads": 1, "state": "R", "thousandths_per_s": 1000, **more})
    for call in calls:
        one.made.add("closer_looks", **who, **{"threads": 1, "calls": 71, "failed": 0, "bytes_per_s": 0, **call})


def read_file(**more: Any) -> dict[str, Any]:
    return {
        "call": "read", "object": "/proc/net/tcp", "thousandths_per_s": 71_000, "took_us": 14_000, "longest_us": 20_000,
        "total_us": 994_000, **more,
    }  # fmt: skip


WAITS = {"call": "epoll_wait", "thousandths_per_s": 1000, "took_us": 900_000, "total_us": 2_000_000}


def incident(one: Scene, place: Path) -> Incident:
    (found,) = one.diagnose(place).incidents
    return found


def link(cause: Cause) -> Link:
    (found,) = [one for one in cause.chain if one.step == "closer look"]
    return found


def test_a_look_that_agrees_says_what_the_hog_does_and_how_sure_that_is(tmp_path: Path) -> None:
    one = scene()
    looked(one, read_file(), WAITS, file="srv/agent.py", line=132, function="poll")
    cause = incident(one, tmp_path).causes[0]
    said = "agent (agent.py:132, poll) reads /proc/net/tcp 71 times a second, 14 ms each"
    assert cause.pattern == FALLBACK
    assert said in cause.summary
    assert said in link(cause).fact
    assert (link(cause).value, link(cause).value_unit, link(cause).source) == (71.0, "calls/s", "closer_looks")
    assert cause.culprit is not None
    assert cause.confidence == 0.6


def test_without_its_object_it_is_less_sure(tmp_path: Path) -> None:
    one = scene()
    looked(one, read_file(object=None))
    assert incident(one, tmp_path).causes[0].confidence < 0.5


def test_without_a_look_it_claims_nothing_as_before(tmp_path: Path) -> None:
    cause = incident(scene(), tmp_path).causes[0]
    assert (cause.confidence, cause.culprit) == (0.1, None)


@pytest.mark.parametrize(
    ("calls", "more", "said"),
    [
        ([WAITS], {}, "epoll_wait"),
        ([], {"why": "it ended during the look"}, "it ended during the look"),
        ([], {"why": "it ran another program during the look"}, "another program"),
        ([], {}, "made no system call that ended in a second, and was running"),
    ],
)
def test_a_look_at_something_else_is_told_and_proves_nothing(
    calls: list[dict[str, Any]], more: dict[str, Any], said: str, tmp_path: Path
) -> None:
    one = scene()
    looked(one, *calls, **more)
    cause = incident(one, tmp_path).causes[0]
    assert said in link(cause).fact
    assert cause.culprit is None
    assert cause.confidence <= 0.1


def test_a_look_at_another_process_is_not_about_the_hog(tmp_path: Path) -> None:
    one = scene()
    looked(one, read_file(), pid=77)
    assert not [each for each in incident(one, tmp_path).causes[0].chain if each.step == "closer look"]


def test_what_keeps_a_core_for_long_is_a_warning_and_what_yields_is_a_note(tmp_path: Path) -> None:
    long, yields = scene(), scene(YIELDS)
    looked(long, read_file())
    looked(yields, {"call": "sched_yield", "thousandths_per_s": 480_000_000, "threads": 24, "total_us": 900_000})
    found = incident(yields, tmp_path / "yields")
    assert incident(long, tmp_path / "long").severity == "warning"
    assert found.severity == "info"
    assert "24 threads of agent (main) call sched_yield 480,000 times a second" in found.causes[0].summary


def test_a_call_that_always_fails_and_is_tried_again_is_a_warning(tmp_path: Path) -> None:
    one = scene()
    looked(one, read_file(took_us=30, thousandths_per_s=90_000_000, failed=71, error="Bad file descriptor"))
    found = incident(one, tmp_path)
    assert "all of them fail (Bad file descriptor)" in found.causes[0].summary
    assert found.severity == "warning"


# --- sentences -------------------------------------------------------------------------------------------------------


def made(call: str, what: str | None = None, **more: Any) -> str:
    values = {
        "threads": 1, "calls": 10, "per_s": 10.0, "took_us": None, "total_us": 10, "bytes_per_s": 0, "failed": 0,
        "error": None, **more,
    }  # fmt: skip
    look = CloserLook(1, 1, "prog", 0, 1, None, 1, "R", None, None, None, None, 10.0, ())
    return sentence(look, Followed(call, what, **values))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (made("write", "/dev/shm/core", bytes_per_s=402_653_184, per_s=1.1),
         "prog writes to /dev/shm/core every 0.9 s, 384 MB a second"),
        (made("getdents64", "/srv"), "prog lists /srv (getdents64) 10 times a second"),
        (made("pread64", "/srv/a", took_us=1_500), "prog reads /srv/a (pread64) 10 times a second, 1.5 ms each"),
        (made("read", "a pipe"), "prog reads from a pipe 10 times a second"),
        (made("openat", "/srv/*"), "prog opens /srv/* 10 times a second"),
        (made("ioctl", "/dev/nvidia0"), "prog calls ioctl on /dev/nvidia0 10 times a second"),
        (made("munmap", "4 kB"), "prog calls munmap of 4 kB 10 times a second"),
        (made("kill", "pid 4711", failed=9, error="No such process"),
         "prog calls kill on pid 4711 10 times a second; most fail (No such process)"),
        (made("futex", "wait", threads=3), "3 threads of prog call futex on wait 10 times a second"),
    ],
)  # fmt: skip
def test_it_names_the_call_its_object_and_its_rate(said: str, expected: str) -> None:
    assert said == expected


@pytest.mark.parametrize(
    ("per_s", "expected"), [(71.2, "71 times a second"), (481_234, "481,000 times a second"), (0.5, "every 2.0 s")]
)
def test_rates_are_said_as_exactly_as_they_were_counted(per_s: float, expected: str) -> None:
    assert rate_text(per_s) == expected


def test_callers_of_a_program_without_python_stand_where_its_line_would() -> None:
    look = CloserLook(1, 1, "prog", 0, 1, None, 1, "R", None, None, None, None, 10.0, ())
    call = Followed("ioctl", None, 1, 10, 10.0, None, 10, 0, 0, None)
    assert sentence(look, call, ("main", "poll_cards")).startswith("prog (main > poll_cards) calls ioctl")


def test_whoever_no_pattern_explains_is_looked_at_while_it_goes_on_or_is_only_just_over(tmp_path: Path) -> None:
    one = scene()
    one.diagnose(tmp_path)
    with open_recording(tmp_path) as recording:
        start, end = recording.start_us, recording.end_us + 1
        found = diagnose(recording, start, end).incidents
        (suspect,) = unexplained(found, recording, start, end)
        assert suspect[0] == AGENT
        assert unexplained(found, recording, start, end + CLOSER_LOOK_RECENT_US) == []
