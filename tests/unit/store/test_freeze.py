"""Frozen windows: ids, repetition, and files that are not theirs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.helpers.recordings import SECOND, START_US

from zombiescope.store.freeze import freeze, list_frozen, thaw


def test_the_id_is_readable_and_stable(tmp_path: Path) -> None:
    first = freeze(tmp_path, START_US, START_US + 600 * SECOND, "NIC reset!", at_us=1)
    again = freeze(tmp_path, START_US, START_US + 600 * SECOND, "NIC reset!", at_us=2)
    assert first.id == again.id == "20251009T085320Z-600s-nic-reset"
    assert list_frozen(tmp_path) == [first]


def test_windows_are_listed_oldest_first_and_can_be_thawed(tmp_path: Path) -> None:
    late = freeze(tmp_path, START_US + 9, START_US + 99, "")
    early = freeze(tmp_path, START_US, START_US + 99, "")
    assert list_frozen(tmp_path) == [early, late]
    thaw(tmp_path, [early.id, "unknown"])
    assert list_frozen(tmp_path) == [late]


def test_an_empty_window_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="empty"):
        freeze(tmp_path, START_US, START_US, "x")


def test_files_that_are_no_windows_freeze_nothing(tmp_path: Path) -> None:
    (tmp_path / "frozen").mkdir()
    (tmp_path / "frozen" / "a.json").write_text("{")
    (tmp_path / "frozen" / "b.json").write_text('{"id": "b"}')
    for name, start in (("c", "soon"), ("d", 1e300), ("e", None), ("f", 1 << 63), ("g", [])):
        window: dict[str, object] = {"id": name, "from_us": start, "to_us": 2, "why": "x", "at_us": 1}
        (tmp_path / "frozen" / f"{name}.json").write_text(json.dumps(window))
    (tmp_path / "frozen" / "h.json").write_text('{"id": "h", "from_us": 1, "to_us": 2, "why": [], "at_us": 1}')
    assert list_frozen(tmp_path) == []
    assert list_frozen(tmp_path / "none") == []


def test_an_id_that_leads_elsewhere_deletes_nothing(tmp_path: Path) -> None:
    victim = tmp_path / "precious.json"
    victim.write_text("{}")
    made = freeze(tmp_path, START_US, START_US + 99, "")
    planted = tmp_path / "frozen" / "planted.json"
    planted.write_text(json.dumps(asdict(made) | {"id": "../precious"}))
    assert list_frozen(tmp_path) == [made]
    thaw(tmp_path, ["../precious", str(tmp_path / "precious")])
    assert victim.exists()
