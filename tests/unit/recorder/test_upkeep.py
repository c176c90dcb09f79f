"""Compaction and retention while a recording is written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from zombiescope.recorder.compactor import Ended
from zombiescope.recorder.config import RecorderConfig
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.upkeep import RETENTION_US, Upkeep
from zombiescope.store import retention
from zombiescope.store.event import Event


class Bench:
    def __init__(self, node_dir: Path) -> None:
        (node_dir / "log").mkdir()
        for name in ("1.seg", "2.seg", "3.seg"):
            (node_dir / "log" / name).touch()
        self.sources, self.events = Sources(), list[Event]()
        self.offered: list[list[str]] = []
        self.ended: Ended | None = None
        compactor = SimpleNamespace(
            process=SimpleNamespace(reap=lambda _: self.ended),
            start_if_due=lambda _, segments: self.offered.append(segments),
        )
        writer: Any = SimpleNamespace(in_use={"3.seg"})
        config = RecorderConfig(dir=str(node_dir))
        self.upkeep = Upkeep(node_dir, config, self.sources, writer, compactor, self.events.append)  # type: ignore[arg-type]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_closed_segments_are_offered_and_the_open_one_is_not(bench: Bench) -> None:
    bench.upkeep.look(0)
    assert bench.offered == [["1.seg", "2.seg"]]


def test_a_helper_that_failed_is_an_event_and_one_that_did_not_is_none(bench: Bench) -> None:
    bench.ended = Ended(0, 1, 1)
    bench.upkeep.look(0)
    assert bench.events == []
    bench.ended = Ended(-9, 1, 1)
    bench.upkeep.look(0)
    assert [(event.kind, event.severity) for event in bench.events] == [("helper_failed", "warning")]
    assert "-9" in bench.events[0].text


def test_retention_that_fails_is_missing_until_it_works(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/r/log/1.seg")

    with monkeypatch.context() as patch:
        patch.setattr(retention, "enforce", refuse)
        bench.upkeep.look(RETENTION_US)
    assert [one.why for one in bench.sources.missing] == ["/r/log/1.seg: Permission denied"]
    bench.upkeep.look(RETENTION_US + 1)
    assert bench.sources.missing, "it is not looked at again so soon"
    bench.upkeep.look(2 * RETENTION_US)
    assert bench.sources.missing == []


def test_a_frozen_window_that_was_given_up_is_an_event(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "enforce", lambda *_: SimpleNamespace(frozen_given_up=["w1"]))
    bench.upkeep.look(RETENTION_US)
    assert [(event.kind, event.fields) for event in bench.events] == [("frozen_given_up", {"id": "w1"})]
