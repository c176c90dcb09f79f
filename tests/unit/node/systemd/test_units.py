"""The signals are those that systemd 252 sends for a service with ExecStart=/bin/false and Restart=always."""

from __future__ import annotations

import pytest

from zombiescope.node.systemd.units import UnitBook, UnitEvent, group_of_slice, unit_name

MS = 1_000_000
UNIT = "crash-loop.service"


class Signals:
    """A service as its signals tell it, with a clock that we turn."""

    def __init__(self, book: UnitBook, counter: bool = True) -> None:
        self.book = book
        self.now_ns = 1_000_000 * MS
        self.events: list[UnitEvent] = []
        self.counter = counter
        self.n_restarts = 0
        self.runs = 0

    def send(self, **properties: object) -> None:
        if self.counter:
            properties = {"NRestarts": self.n_restarts, **properties}
        self.events += self.book.changed(UNIT, properties, self.now_ns)

    def wait(self, ms: int) -> None:
        for _ in range(0, ms, 10):
            self.now_ns += 10 * MS
            self.events += self.book.due(self.now_ns)

    def starts(self) -> None:
        self.runs += 1
        self.send(Result="success", ExecMainCode=0, ExecMainStatus=0, ExecMainPID=100 + self.runs)
        self.send(ActiveState="active", SubState="running", InvocationID=bytes([self.runs] * 16))

    def crashes(self) -> None:
        self.send(Result="exit-code", ExecMainCode=1, ExecMainStatus=1)
        self.send(ActiveState="failed", SubState="failed")
        self.send(ActiveState="activating", SubState="auto-restart")

    def comes_back(self) -> None:
        self.n_restarts += 1
        self.send()
        self.send(ActiveState="inactive", SubState="dead")
        self.starts()

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


@pytest.fixture
def signals() -> Signals:
    book = UnitBook()
    book.list_ended()
    book.appeared(UNIT)
    return Signals(book)


def test_a_restart_is_told_once_with_why_the_last_run_ended(signals: Signals) -> None:
    # GIVEN a service that runs
    signals.starts()
    signals.wait(2_000)
    signals.events.clear()
    # WHEN it crashes and comes back ten seconds later
    signals.crashes()
    signals.wait(10_000)
    signals.comes_back()
    signals.wait(5_000)
    # THEN one event says so, and the states in between are not news
    (event,) = signals.events
    assert (event.kind, event.severity) == ("unit_restart", "warning")
    assert event.text == "crash-loop.service restarted, 1 so far: exit-code, exited with status 1"
    assert event.fields["n_restarts"] == 1
    assert event.fields["delta"] == 1
    assert event.fields["result"] == "exit-code"
    assert event.fields["exec_main_status"] == 1
    assert event.fields["invocation_id"] == "01" * 16


def test_a_fast_crash_loop_is_one_event_a_second_and_never_failed(signals: Signals) -> None:
    signals.starts()
    for _ in range(50):
        signals.crashes()
        signals.wait(100)
        signals.comes_back()
    signals.wait(2_000)
    restarts = [event for event in signals.events if event.kind == "unit_restart"]
    assert sum(int(event.fields["delta"] or 0) for event in restarts) == 50
    assert len(restarts) <= 7
    assert "unit_failed" not in signals.kinds()


def test_the_start_limit_is_a_failure(signals: Signals) -> None:
    signals.starts()
    signals.wait(2_000)
    signals.send(Result="start-limit-hit", ExecMainCode=1, ExecMainStatus=1)
    signals.send(ActiveState="failed", SubState="failed")
    signals.wait(2_000)
    event = signals.events[-1]
    assert (event.kind, event.severity) == ("unit_failed", "warning")
    assert event.text == "crash-loop.service failed: start-limit-hit, exited with status 1"


def test_failed_before_auto_restart_of_systemd_254_is_no_failure(signals: Signals) -> None:
    signals.starts()
    signals.wait(2_000)
    signals.events.clear()
    signals.send(ActiveState="failed", SubState="failed-before-auto-restart")
    signals.wait(2_000)
    assert signals.events == []


def test_start_and_stop_are_states(signals: Signals) -> None:
    signals.starts()
    signals.wait(1_000)
    signals.send(ActiveState="inactive", SubState="dead")
    signals.wait(1_000)
    assert [event.text for event in signals.events] == [
        "crash-loop.service started",
        "crash-loop.service stopped: success",
    ]
    assert {event.severity for event in signals.events} == {"info"}


def test_a_service_that_runs_for_a_moment_is_told_when_it_has_ended(signals: Signals) -> None:
    signals.starts()
    signals.send(ActiveState="inactive", SubState="dead")
    signals.wait(1_000)
    signals.events.clear()
    signals.starts()
    signals.send(ActiveState="inactive", SubState="dead", ExecMainCode=1)
    signals.wait(1_000)
    assert [event.text for event in signals.events] == [
        "crash-loop.service ran and ended: success, exited with status 0"
    ]


def test_somebody_restarting_a_service_is_no_unit_restart(signals: Signals) -> None:
    signals.starts()
    signals.wait(1_000)
    signals.events.clear()
    signals.send(ActiveState="inactive", SubState="dead")
    signals.starts()
    signals.wait(1_000)
    assert [(event.kind, event.text) for event in signals.events] == [("unit_state", "crash-loop.service restarted")]


def test_reset_failed_sets_the_counter_back(signals: Signals) -> None:
    signals.starts()
    signals.n_restarts = 40
    signals.send()
    signals.wait(2_000)
    signals.events.clear()
    # WHEN the counter is reset, and then two restarts are seen at once
    signals.n_restarts = 0
    signals.send()
    signals.n_restarts = 2
    signals.send()
    signals.wait(2_000)
    assert [event.fields["delta"] for event in signals.events if event.kind == "unit_restart"] == [2]


def test_an_answer_that_was_overtaken_sets_nothing_back() -> None:
    book = UnitBook()
    book.listed(UNIT, "activating", "auto-restart", 0)
    book.list_ended()
    book.changed(UNIT, {"NRestarts": 70}, 1)
    # WHEN the answer to a question that was asked one restart before comes late, and then the next signal
    told = [*book.changed(UNIT, {"NRestarts": 69}, 2), *book.changed(UNIT, {"NRestarts": 71}, 60_000 * MS)]
    assert [(event.fields["n_restarts"], event.fields["delta"]) for event in told] == [(71, 1)]


def test_reset_between_two_looks(signals: Signals) -> None:
    signals.n_restarts = 40
    signals.send()
    signals.wait(2_000)
    signals.events.clear()
    signals.n_restarts = 3
    signals.send()
    signals.wait(2_000)
    assert [event.fields["delta"] for event in signals.events] == [3]


def test_what_was_there_before_us_is_not_news() -> None:
    # GIVEN a service that has been restarted 124 times when we first look
    book = UnitBook()
    assert book.listed(UNIT, "activating", "auto-restart", 0) == []
    assert book.changed(UNIT, {"NRestarts": 124, "InvocationID": b"\1" * 16}, 1) == []
    assert book.due(10_000 * MS) == []
    # WHEN it is restarted once more
    (event,) = book.changed(UNIT, {"NRestarts": 125}, 20_000 * MS)
    assert (event.fields["n_restarts"], event.fields["delta"]) == (125, 1)


def test_a_unit_called_new_before_the_first_list_was_there_before_us() -> None:
    # GIVEN the first subscriber, whom systemd tells of an old crash loop as if it were new
    book = UnitBook()
    book.appeared(UNIT)
    assert book.changed(UNIT, {"ActiveState": "activating", "SubState": "auto-restart"}, 0) == []
    assert book.listed(UNIT, "activating", "auto-restart", 1) == []
    book.list_ended()
    # WHEN its counter is first read, and then rises
    assert book.changed(UNIT, {"NRestarts": 138}, 2) == []
    (event,) = book.changed(UNIT, {"NRestarts": 139}, 20_000 * MS)
    # THEN only the rise is news
    assert event.fields["delta"] == 1


def test_restarts_while_the_bus_was_away_are_told_after_it(signals: Signals) -> None:
    signals.starts()
    signals.wait(2_000)
    signals.events.clear()
    signals.events += signals.book.listed(UNIT, "active", "running", signals.now_ns)
    signals.n_restarts = 9
    signals.send(InvocationID=b"\7" * 16)
    signals.wait(2_000)
    assert [(event.kind, event.fields["delta"]) for event in signals.events] == [("unit_restart", 9)]


def test_systemd_before_235_has_no_counter() -> None:
    book = UnitBook()
    book.listed(UNIT, "active", "running", 0)
    signals = Signals(book, counter=False)
    for _ in range(3):
        signals.crashes()
        signals.wait(10_000)
        signals.comes_back()
        signals.wait(2_000)
    restarts = [event for event in signals.events if event.kind == "unit_restart"]
    assert [event.fields["delta"] for event in restarts] == [1, 1, 1]
    assert restarts[0].fields["n_restarts"] is None


def test_the_control_group_is_kept_while_the_unit_is_down(signals: Signals) -> None:
    signals.send(ControlGroup="/system.slice/crash-loop.service", Slice="system.slice")
    signals.send(ControlGroup="", Slice="system.slice")
    (state,) = signals.book.snapshot()
    assert state.control_group == "/system.slice/crash-loop.service"


def test_the_control_group_of_a_unit_that_never_had_one_follows_from_its_slice(signals: Signals) -> None:
    signals.send(ControlGroup="", Slice="system-getty.slice")
    (state,) = signals.book.snapshot()
    assert state.control_group == f"/system.slice/system-getty.slice/{UNIT}"
    assert group_of_slice("-.slice", "a.service") == "/a.service"


def test_removed_units_are_forgotten_but_not_their_last_news(signals: Signals) -> None:
    signals.starts()
    signals.send(ActiveState="failed", SubState="failed", Result="signal", ExecMainCode=2, ExecMainStatus=9)
    events = signals.book.removed(UNIT, signals.now_ns)
    assert [event.text for event in events] == ["crash-loop.service failed: signal, killed with signal 9"]
    assert signals.book.snapshot() == []
    assert signals.book.next_due_ns() is None


def test_units_removed_while_nobody_listened_are_forgotten(signals: Signals) -> None:
    signals.starts()
    signals.book.keep_only({"other.service"})
    assert signals.book.snapshot() == []
    assert signals.book.due(signals.now_ns + 10_000 * MS) == []


def test_bad_jobs_are_told_once_a_minute(signals: Signals) -> None:
    book = signals.book
    assert book.job_removed("data.mount", "done", 0) == []
    assert [e.severity for e in book.job_removed("data.mount", "timeout", 0)] == ["warning"]
    assert book.job_removed("data.mount", "timeout", 30_000 * MS) == []
    assert len(book.job_removed("data.mount", "timeout", 61_000 * MS)) == 1


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/org/freedesktop/systemd1/unit/crash_2dloop_2eservice", "crash-loop.service"),
        ("/org/freedesktop/systemd1/unit/getty_40tty1_2eservice", "getty@tty1.service"),
        ("/org/freedesktop/systemd1/unit/_33proxy_2eservice", "3proxy.service"),
    ],
)
def test_names_from_paths(path: str, name: str) -> None:
    assert unit_name(path) == name


def test_a_unit_that_only_a_later_list_shows_is_news() -> None:
    # GIVEN a unit that was there before us, and one that was loaded while we did not hear of it
    book = UnitBook()
    book.listed("old.service", "activating", "auto-restart", 0)
    book.list_ended()
    book.listed("late.service", "activating", "auto-restart", 0)
    # WHEN both say that they were restarted three times
    # THEN those of the second are news, and those of the first are where we begin
    assert book.changed("old.service", {"NRestarts": 3}, 10_000_000_000) == []
    (told,) = book.changed("late.service", {"NRestarts": 3}, 10_000_000_000)
    assert told.fields["delta"] == 3
