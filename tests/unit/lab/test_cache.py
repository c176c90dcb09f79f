"""Images in the cache: whole or not there."""

from __future__ import annotations

import os
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


def test_only_the_newest_are_kept(own_cache: Path) -> None:
    def build(into: Path) -> None:
        (into / "disk").touch()

    for number in range(cache.KEPT["product"] + 2):
        made = cache.entry("product", f"key{number}", build)
        os.utime(made, (number, number))
    assert cache.find("product", "key0") is None
    assert cache.find("product", made.name) == made
    assert len([path for path in (own_cache / "product").iterdir() if path.is_dir()]) == cache.KEPT["product"]
