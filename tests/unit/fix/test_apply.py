"""Steps are done once, in order, until one fails; whatever happens in between, the log tells the truth and a second run
finishes or goes back."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.remedies import STEPS, TARGET, plan_of, texts, yes

from zombiescope.base.safe_files import UnsafePlaceError
from zombiescope.documents.fix import answer
from zombiescope.fix import log
from zombiescope.fix.apply import apply, apply_in_rounds
from zombiescope.fix.step import Step
from zombiescope.fix.undo import undo
from zombiescope.model.plans import history

WHERE = ("before-applying", "applying", "done", "applied")
OLD = [f"old {name}" for name in STEPS]


def states(plan_steps: tuple[Step, ...]) -> list[str]:
    return [step.state for step in plan_steps]


def test_every_step_is_logged_before_and_after_it(tmp_path: Path) -> None:
    with log.opened(tmp_path / "log") as held:
        done = apply(plan_of(tmp_path), held, yes)
        entries = held.entries()
    assert states(done.steps) == ["applied"] * 3
    assert [(one.step, one.event) for one in entries[1:]] == list(itertools.product(STEPS, ("applying", "applied")))
    assert entries[1].before == {"text": "old one"}
    assert entries[2].after == {"text": "new"}
    assert entries[1].who["pid"] == os.getpid()


@pytest.mark.parametrize(
    ("environment", "person"),
    [
        ({"SUDO_USER": "anna"}, "anna"),
        ({"PKEXEC_UID": "0"}, "root"),
        ({"PKEXEC_UID": "nobody in particular"}, None),
        ({"PKEXEC_UID": "9" * 30}, None),
        ({}, None),
    ],
)
def test_the_log_names_who_asked_sudo_or_polkit(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], person: str | None
) -> None:
    for name in ("SUDO_USER", "PKEXEC_UID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert log.who()["sudo"] == person


def test_applied_twice_is_applied_once(tmp_path: Path) -> None:
    with log.opened(tmp_path / "log") as held:
        apply(plan_of(tmp_path), held, yes)
        again = apply(plan_of(tmp_path), held, yes)
        assert [one.event for one in held.entries()].count("applying") == 3
    assert states(again.steps) == ["applied"] * 3


def test_what_shows_only_when_the_culprit_is_stopped_is_planned_asked_for_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a plan whose second and third steps are seen only after the first
    whole = replace(plan_of(tmp_path), pattern="zombie-memcg")
    monkeypatch.setattr("zombiescope.fix.apply.RELEASES", ("test.file",))
    seen = iter([2, 3, 3])
    asked: list[str] = []

    def consent(step: Step) -> bool:
        asked.append(step.id)
        return True

    with log.opened(tmp_path / "log") as held:
        done = apply_in_rounds(
            replace(whole, steps=whole.steps[:1]), lambda: replace(whole, steps=whole.steps[: next(seen)]), held,
            consent, settle_s=0,
        )  # fmt: skip
        assert [one.step for one in held.entries() if one.event == "applied"] == list(STEPS)
    assert asked == list(STEPS)
    assert states(done.steps) == ["applied"] * 3


def test_nobody_else_is_ended_because_he_came_to_light(tmp_path: Path) -> None:
    whole = replace(plan_of(tmp_path), pattern="zombie-memcg")
    with log.opened(tmp_path / "log") as held:
        done = apply_in_rounds(replace(whole, steps=whole.steps[:1]), lambda: whole, held, yes, settle_s=0)
    assert [step.id for step in done.steps] == ["one"]


def test_where_a_step_was_not_wanted_nothing_more_is_looked_for(tmp_path: Path) -> None:
    whole = replace(plan_of(tmp_path), pattern="zombie-memcg")
    with log.opened(tmp_path / "log") as held:
        done = apply_in_rounds(whole, lambda: pytest.fail("planned again"), held, lambda _: False, settle_s=0)
    assert states(done.steps) == ["skipped"] * 3


def test_undone_it_is_as_it_was_and_there_is_nothing_left_to_undo(tmp_path: Path) -> None:
    with log.opened(tmp_path / "log") as held:
        apply(plan_of(tmp_path), held, yes)
        assert [one.step for one in undo(held, TARGET, yes)] == list(reversed(STEPS))
        assert texts(tmp_path) == OLD
        assert list(undo(held, TARGET, yes)) == []


def test_what_somebody_else_did_is_not_undone(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    (tmp_path / "two").write_text("new")
    with log.opened(tmp_path / "log") as held:
        done = apply(plan, held, yes)
        assert done.steps[1].why == "it was so already"
        assert [one.step for one in undo(held, TARGET, yes)] == ["three", "one"]
    assert texts(tmp_path) == ["old one", "new", "old three"]


def test_a_step_that_is_refused_is_left_out(tmp_path: Path) -> None:
    with log.opened(tmp_path / "log") as held:
        done = apply(plan_of(tmp_path), held, lambda step: step.id != "two")
    assert states(done.steps) == ["applied", "skipped", "applied"]
    assert texts(tmp_path) == ["new", "old two", "new"]


def test_it_stops_at_the_first_step_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No permission half-way: a directory of that name stands for what even root may not write."""
    plan = plan_of(tmp_path)
    real = Path.write_text

    def refused(path: Path, text: str) -> int:
        if path.name == "two":
            raise PermissionError(13, "Permission denied")
        return real(path, text)

    monkeypatch.setattr(Path, "write_text", refused)
    with log.opened(tmp_path / "log") as held:
        done = apply(plan, held, yes)
        monkeypatch.undo()
        assert states(done.steps) == ["applied", "failed", "planned"]
        assert "Permission denied" in done.steps[1].why
        assert texts(tmp_path) == ["new", "old two", "old three"]
        assert all(one.ok for one in undo(held, TARGET, yes))
    assert texts(tmp_path) == OLD


@pytest.mark.parametrize(("where", "step"), list(itertools.product(WHERE, STEPS)))
def test_killed_anywhere_a_second_run_finishes_or_goes_back(tmp_path: Path, where: str, step: str) -> None:
    for way in ("finish", "back"):
        place = tmp_path / way
        place.mkdir(mode=0o755)
        argv = [sys.executable, "-m", "tests.helpers.remedies", str(place), where, step]
        assert subprocess.run(argv, timeout=60, check=False).returncode == -signal.SIGKILL
        changed = [name for name, text in zip(STEPS, texts(place), strict=True) if text == "new"]
        with log.opened(place / "log") as held:
            known = history.of(held.entries(), TARGET)
            assert set(changed) <= {name for name, one in known.items() if one.is_ours}
            if way == "finish":
                assert states(apply(plan_of(place), held, yes).steps) == ["applied"] * 3
                assert texts(place) == ["new"] * 3
            plan_of(place)  # makes the action known, as a file in actions/ would be
            assert all(one.ok for one in undo(held, TARGET, yes))
        assert texts(place) == OLD


def test_a_line_that_was_cut_off_is_ignored_and_closed(tmp_path: Path) -> None:
    with log.opened(tmp_path / "log") as held:
        apply(plan_of(tmp_path), held, yes)
    path = tmp_path / "log" / log.FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    with log.opened(tmp_path / "log") as held:
        assert history.of(held.entries(), TARGET)["three"].event == "applying"
        held.append(TARGET, "verified")
        assert held.entries()[-1].event == "verified"
    lines = path.read_bytes().split(b"\n")
    assert json.loads(lines[-2])["event"] == "verified"


def test_one_fix_at_a_time(tmp_path: Path) -> None:
    with log.opened(tmp_path / "log"), pytest.raises(log.LogBusyError), log.opened(tmp_path / "log"):
        pass


def test_a_log_that_others_may_write_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "log"
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(UnsafePlaceError), log.opened(place):
        pass


def test_what_a_log_says_is_only_done_where_it_makes_an_action(tmp_path: Path) -> None:
    action = {"kind": "unit.disable", "arguments": {"unit": "--root=/; rm.service"}}
    with log.opened(tmp_path / "log") as held:
        held.append(TARGET, "applying", "odd", action=action, before={})
        (only,) = undo(held, TARGET, yes)
    assert not only.ok
    assert "not a systemd unit name" in only.why


def test_cut_off_anywhere_the_log_never_claims_what_was_not_done(tmp_path: Path) -> None:
    """Truncated at each byte: a step whose line is whole is known, and what was being done is ours to take back."""
    with log.opened(tmp_path / "log") as held:
        apply(plan_of(tmp_path), held, yes)
    path = tmp_path / "log" / log.FILE
    whole = path.read_bytes()
    ends = {at + 1 for at, byte in enumerate(whole) if byte == 10}
    for size in sorted({*range(0, len(whole), 37), *ends, *(end - 1 for end in ends)}):
        path.write_bytes(whole[:size])
        known = history.of(log.entries(tmp_path / "log"), TARGET)
        last = max((end for end in ends if end <= size + 1), default=0)
        lines = [json.loads(line) for line in whole[:last].split(b"\n")[:-1]]
        begun = {line["step"] for line in lines if line["event"] == "applying"}
        done = {line["step"] for line in lines if line["event"] == "applied"}
        assert {name for name, one in known.items() if one.is_ours} == begun
        assert {name for name, one in known.items() if one.state == "applied"} == done


LINE: dict[str, Any] = {
    "at": 1.0, "run": "r", "who": {"uid": 0}, "target": TARGET, "step": "s", "event": "applying",
    "action": {"kind": "test.file", "arguments": {"path": "/nowhere/at/all"}},
    "before": {"text": "old"}, "after": None, "why": "",
}  # fmt: skip
DAMAGE: list[Any] = [None, [], "x", 7, -1, 1e300, float("inf"), {"kind": 3}, {"kind": "test.file", "arguments": []}]


@pytest.mark.parametrize("key", sorted(LINE))
def test_a_line_whose_parts_are_of_another_kind_is_shown_or_left_out_and_breaks_nothing(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZOMBIESCOPE_FIX_DIR", str(tmp_path / "log"))
    (tmp_path / "log").mkdir()
    plan_of(tmp_path)
    lines = [json.dumps({**LINE, key: value}) for value in DAMAGE]
    lines += [json.dumps({name: value for name, value in LINE.items() if name != key}), "[" * 10_000, "null", "\x00"]
    (tmp_path / "log" / log.FILE).write_text("\n".join(lines) + "\n")
    answer(TARGET)
    with log.opened() as held:
        for entry in held.entries():
            datetime.fromtimestamp(entry.at).astimezone()
        with suppress(FileNotFoundError):  # of the one file that a whole line names
            assert all(one.ok or one.why for one in undo(held, TARGET, yes))


@pytest.mark.parametrize(
    "before", [{}, {"threads": 5}, {"threads": [1]}, {"threads": [{"tid": "x"}]}, {"file_state": [], "also": 3}]
)
@pytest.mark.parametrize("action", [
    {"kind": "hog.move", "arguments": {"pid": os.getpid(), "start_time_ticks": 0, "cores": [0]}},
    {"kind": "hog.move", "arguments": {"pid": "x", "start_time_ticks": 0, "cores": ["y"]}},
    {"kind": "trial.freeze", "arguments": {"frozen": "{}"}},
    {"kind": "tmpfs.remove", "arguments": {"files": [[1]], "users": []}},
    {"kind": "node.cordon", "arguments": {"node": "n", "more": 1}},
    {"kind": "node.reboot", "arguments": {"boot_id": ""}},
    {"kind": "container.stop", "arguments": {"client": "sh", "name": "x"}},
])  # fmt: skip
def test_what_a_log_says_of_before_is_never_a_traceback(
    tmp_path: Path, action: dict[str, Any], before: dict[str, Any]
) -> None:
    with log.opened(tmp_path / "log") as held:
        held.append(TARGET, "applying", "odd", action=action, before=before)
        (only,) = undo(held, TARGET, yes)
    assert only.ok or only.why


def test_a_log_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """Planted before root's first fix: a directory, a file, a link to a file of his."""
    if os.geteuid() != 0:
        pytest.skip("only root can be given something by another user")
    planted = tmp_path / "planted"
    planted.mkdir()
    os.chown(planted, 65534, 65534)
    with pytest.raises(UnsafePlaceError, match="belongs to"), log.opened(planted):
        pass
    own = tmp_path / "own"
    own.mkdir()
    (own / log.FILE).write_text(json.dumps(LINE) + "\n")
    os.chown(own / log.FILE, 65534, 65534)
    with pytest.raises(UnsafePlaceError), log.opened(own):
        pass
    (own / log.FILE).unlink()
    (own / log.FILE).symlink_to(planted / "x")
    with pytest.raises(UnsafePlaceError, match="is a link"), log.opened(own):
        pass
