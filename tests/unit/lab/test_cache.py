"""Images in the cache: whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.lab import cache


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZOMBIESCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_entry_is_built_once() -> None:
    built = []

    def build(into: Path) -> None:
        built.append(into)
        (into / "disk").write_text("whole")

    assert (cache.entry("disk", "one", build) / "disk").read_text() == "whole"
    assert (cache.entry("disk", "one", build) / "disk").read_text() == "whole"
    assert len(built) == 1


def test_a_build_that_fails_leaves_no_entry() -> None:
    def build(into: Path) -> None:
        (into / "disk").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.entry("disk", "one", build)
    assert cache.find("disk", "one") is None


def test_parts_do_not_run_into_each_other() -> None:
    assert cache.key("ab", "c") != cache.key("a", "bc")


def test_clearing_removes_images_and_nothing_else(own_cache: Path) -> None:
    def build(into: Path) -> None:
        (into / "disk").write_bytes(bytes(100_000))

    cache.entry("disk", "one", build)
    (own_cache / "theirs").write_text("kept")
    assert cache.clear() >= 100_000
    assert [path.name for path in own_cache.iterdir()] == ["theirs"]
