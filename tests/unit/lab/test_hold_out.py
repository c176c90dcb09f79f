"""What counts as right for a stressor that no scenario was written for; and what is never run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from zombiescope.cli.failure import Failure
from zombiescope.cli.lab import hold_out as runs
from zombiescope.diagnosis import patterns
from zombiescope.lab import cage, stressors
from zombiescope.lab.hold_out import counts, is_right_path, meets_the_goal, page_of, verdict

DOCS = Path(__file__).parents[3] / "docs" / "data"
CAGE = "/zombiescope-lab-hold-out-pipe/program"
MINE = {"comm": "stress-ng-pipe", "cgroup": CAGE}
OTHER = {"comm": "make", "cgroup": "/build"}
CALLS = {"write": 0.5, "read": 0.3, "openat": 0.1}


def incident(pattern: str, hog: dict[str, Any], culprit: dict[str, Any] | None, asked: str = "write") -> dict[str, Any]:
    cause = {"pattern": pattern, "hog": hog, "culprit": culprit, "confidence": 0.9, "summary": "so", "asked": asked}
    return {"severity": "info", "causes": [cause]}


def judged(*incidents: dict[str, Any], accepts: frozenset[str] = frozenset()) -> dict[str, Any]:
    return verdict("pipe", incidents, CALLS, accepts)


def test_not_known_is_honest_and_names_the_process_and_the_call() -> None:
    said = judged(incident("unknown-kernel-hog", MINE, None))
    assert (said["reported"], said["process"], said["path"], said["pattern_is"]) == (True, True, True, "unknown")


def test_an_incident_of_somebody_else_is_no_report() -> None:
    said = judged(incident("fork-storm", OTHER, OTHER))
    assert (said["reported"], said["process"], said["pattern_is"]) == (False, False, "none")


def test_who_is_blamed_counts_and_not_who_burnt_the_core() -> None:
    assert judged(incident("fork-storm", MINE, OTHER))["process"] is False
    assert judged(incident("fork-storm", OTHER, MINE))["process"] is True


def test_a_task_that_was_gone_is_known_by_its_name_and_a_stranger_of_that_name_is_not() -> None:
    assert judged(incident("fork-storm", {"comm": "stress-ng-pipe", "cgroup": None}, None))["process"] is True
    assert judged(incident("fork-storm", {"comm": "stress-ng-pipe", "cgroup": "/else"}, None))["reported"] is False


@pytest.mark.parametrize(("pattern", "expected"), [("fork-storm", "right"), ("page-fault-storm", "wrong")])
def test_a_pattern_is_right_only_if_the_manual_bears_it_out(pattern: str, expected: str) -> None:
    assert judged(incident(pattern, MINE, None), accepts=frozenset({"fork-storm"}))["pattern_is"] == expected


@pytest.mark.parametrize(
    ("said", "right"), [("write", True), ("read", True), ("openat", False), ("fork", False), (None, False)]
)
def test_a_call_is_right_if_it_has_half_as_many_samples_as_the_first(said: str | None, right: bool) -> None:
    assert is_right_path(said, CALLS) is right
    assert is_right_path(said, {}) is False


def test_the_truth_names_patterns_that_exist_and_stressors_that_may_run() -> None:
    known = {pattern.id for pattern in patterns.every()}
    for name in {
        *stressors._ONLY,
        *stressors._MAKE_PROCESSES.split(),
        *stressors._TOUCH_MEMORY.split(),
        *stressors._READ_OR_WRITE_FILES.split(),
    }:
        assert stressors.accepted(name, at_limit=True) <= known
        assert name not in stressors.EXCLUDED
    assert not stressors.AS_ROOT & stressors.EXCLUDED.keys()
    assert stressors.accepted("pipe") == frozenset()
    assert "oom-kill" in stressors.accepted("pipe", at_limit=True)


@pytest.mark.parametrize("name", sorted(stressors.EXCLUDED))
def test_what_would_hurt_the_machine_is_refused_before_anything_is_made(name: str) -> None:
    with pytest.raises(SystemExit, match="is not run: it "):
        cage.main([name, "1"])


def test_it_is_refused_by_the_command_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stressors, "every", lambda: ["reboot", "pipe"])
    monkeypatch.setattr(stressors, "version", lambda: "0")
    assert runs.chosen(None) == ["pipe"]
    with pytest.raises(Failure, match="reboot is never run: it asks for a reboot"):
        runs.chosen("reboot")
    with pytest.raises(Failure, match="'nonsense' is not a stressor"):
        runs.chosen("nonsense")


def test_what_was_run_before_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def caged(name: str, seconds: int) -> dict[str, Any]:
        asked.append(name)
        return {"system_s": 0.1, "user_s": 1.0, "exit": 0, "at_limit": False, "said": ""}

    monkeypatch.setattr(runs, "_caged", caged)
    for _ in range(2):
        found = list(runs.rows(tmp_path, ["pipe", "fork"], None, lambda _: None))
    assert asked == ["pipe", "fork"]
    assert [(row["stressor"], row["held"]) for row in found] == [("pipe", False), ("fork", False)]
    (tmp_path / "pipe" / "run.json").write_text('{"stre')  # broken off while it was written
    list(runs.rows(tmp_path, ["pipe"], None, lambda _: None))
    assert asked == ["pipe", "fork", "pipe"]


def test_beside_a_load_nothing_is_scanned_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_caged", lambda *_: {"system_s": 0.1, "said": "", "at_limit": False})
    list(runs.rows(tmp_path, ["pipe"], None, lambda _: None))
    monkeypatch.setattr(runs, "_caged", lambda name, _: pytest.fail(f"{name} was run"))
    (row,) = runs.rows(tmp_path, ["pipe"], "healthy-training", lambda _: None)
    assert (row["beside"], row["held"], row["system_cores"]) == ("healthy-training", False, 0.05)


def test_a_round_that_runs_out_of_time_says_what_it_did_not_come_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_caged", lambda name, _: pytest.fail(f"{name} was run"))
    found = list(runs.rows(tmp_path, ["pipe", "fork"], None, lambda _: None, 0.0))
    assert counts(found)["runs"] == 0
    assert "did not reach: pipe, fork." in page_of(found)


def row(name: str, **more: Any) -> dict[str, Any]:
    return {
        "stressor": name, "beside": "alone", "system_cores": 0.9, "held": True, "skipped": "", "others_cores": 0.1,
        "version": "0.15", "kernel": "6.18", "cores": 2, "calls": CALLS, "reported": True, "severity": "info",
        "process": True, "path": True, "pattern": "unknown-kernel-hog", "pattern_is": "unknown", "confidence": 0.1,
    } | more  # fmt: skip


def test_the_goal() -> None:
    rows = [row("pipe") for _ in range(95)] + [row("fork", process=False) for _ in range(5)]
    assert meets_the_goal(counts(rows))
    assert not meets_the_goal(counts([*rows, row("fork", process=False)]))
    wrong = [row("fork", pattern="rt-hog", pattern_is="wrong") for _ in range(3)]
    assert not meets_the_goal(counts([*rows, *wrong]))
    assert not meets_the_goal(counts([])), "nothing was run"


def test_the_page_shows_every_run_and_what_was_left_out() -> None:
    page = page_of(
        [
            row("pipe"),
            row("fork", pattern="rt-hog", pattern_is="wrong", said_call="read|x", path=False),
            row("nop", held=False, system_cores=0.0),
            row("kcmp", held=False, skipped="not implemented"),
        ]
    )
    assert "| pipe | alone | 0.90 | info | right | write: right | not known | 0.10 |" in page
    assert "**rt-hog, wrong**" in page
    assert "**read/x, not write**" in page
    assert "less than half a core busy in the kernel: nop." in page
    assert "kcmp (not implemented)" in page
    assert "| reboot | asks for a reboot |" in page


def test_the_published_page_is_made_of_the_published_rows() -> None:
    rows = json.loads((DOCS / "unseen-faults.json").read_text())["hold_out"]
    assert (DOCS / "unseen-faults.md").read_text() == page_of(rows)
