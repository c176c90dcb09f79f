"""The store on disk: made once, never believed when damaged, bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zombiescope.symbols.store import TRAILER, SymbolStore, content_bytes, default_directory

KEY = bytes(range(20))


def filled(content: bytes):  # type: ignore[no-untyped-def]
    return lambda fd: os.write(fd, content)


def content_of(fd: int | None) -> bytes | None:
    if fd is None:
        return None
    try:
        return os.pread(fd, content_bytes(fd), 0)
    finally:
        os.close(fd)


def test_what_was_made_is_found(tmp_path: Path) -> None:
    store = SymbolStore(tmp_path / "store")
    assert store.open("kind", KEY) is None
    assert content_of(store.make("kind", KEY, filled(b"content"))) == b"content"
    for again in (store, SymbolStore(tmp_path / "store")):
        assert content_of(again.open("kind", KEY)) == b"content"
        assert again.open("other", KEY) is None
    assert [path.name for path in (tmp_path / "store").iterdir()] == [f"kind-{KEY.hex()}"]


@pytest.mark.parametrize("at", range(0, 7 + TRAILER.size, 5))
def test_a_damaged_entry_is_made_again(tmp_path: Path, at: int) -> None:
    content_of(SymbolStore(tmp_path).make("kind", KEY, filled(b"content")))
    entry = tmp_path / f"kind-{KEY.hex()}"
    data = bytearray(entry.read_bytes())
    data[at] ^= 1
    entry.write_bytes(data)
    store = SymbolStore(tmp_path)
    assert store.open("kind", KEY) is None
    assert store.damaged == 1
    assert not entry.exists()
    assert content_of(store.make("kind", KEY, filled(b"content"))) == b"content"


@pytest.mark.parametrize("size", [0, 1, TRAILER.size - 1, TRAILER.size, TRAILER.size + 6])
def test_a_cut_entry_is_not_believed(tmp_path: Path, size: int) -> None:
    content_of(SymbolStore(tmp_path).make("kind", KEY, filled(b"content")))
    os.truncate(tmp_path / f"kind-{KEY.hex()}", size)
    assert SymbolStore(tmp_path).open("kind", KEY) is None


def test_an_entry_that_changes_under_us_is_checked_again(tmp_path: Path) -> None:
    store = SymbolStore(tmp_path)
    content_of(store.make("kind", KEY, filled(b"content")))
    assert content_of(store.open("kind", KEY)) == b"content"
    entry = tmp_path / f"kind-{KEY.hex()}"
    entry.write_bytes(b"C" + entry.read_bytes()[1:])
    assert store.open("kind", KEY) is None


def test_an_entry_under_another_name_is_not_believed(tmp_path: Path) -> None:
    store = SymbolStore(tmp_path)
    content_of(store.make("kind", KEY, filled(b"content")))
    (tmp_path / f"kind-{KEY.hex()}").rename(tmp_path / f"kind-{KEY[::-1].hex()}")
    assert store.open("kind", KEY[::-1]) is None


def test_links_and_directories_others_write_to_are_not_used(tmp_path: Path) -> None:
    store = SymbolStore(tmp_path / "store")
    content_of(store.make("kind", KEY, filled(b"content")))
    entry = tmp_path / "store" / f"kind-{KEY.hex()}"
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    assert SymbolStore(tmp_path / "store").open("kind", KEY) is None
    entry.unlink()
    (tmp_path / "elsewhere").rename(entry)
    assert content_of(SymbolStore(tmp_path / "store").open("kind", KEY)) == b"content"
    (tmp_path / "store").chmod(0o777)
    assert SymbolStore(tmp_path / "store").open("kind", KEY) is None
    assert SymbolStore(tmp_path / "store").make("kind", b"2", filled(b"x")) is None


def test_a_fault_while_making_leaves_nothing(tmp_path: Path) -> None:
    def faulty(fd: int) -> None:
        os.write(fd, b"half")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        SymbolStore(tmp_path).make("kind", KEY, faulty)
    assert not list(tmp_path.iterdir())


def test_the_oldest_go_when_there_is_too_much(tmp_path: Path) -> None:
    store = SymbolStore(tmp_path, max_bytes=10_000)
    for number in range(8):
        content_of(store.make("kind", bytes([number]), filled(bytes(2000))))
        os.utime(tmp_path / f"kind-{number:02x}", (number, number))
    held = {path.name for path in tmp_path.iterdir()}
    assert held == {f"kind-{number:02x}" for number in (4, 5, 6, 7)}
    # one that is used counts as new
    content_of(SymbolStore(tmp_path).open("kind", b"\x04"))
    content_of(store.make("kind", b"\x08", filled(bytes(2000))))
    assert (tmp_path / "kind-04").exists()
    assert not (tmp_path / "kind-05").exists()


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ZOMBIESCOPE_CACHE", "CACHE_DIRECTORY", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_directory() == Path("/var/cache/zombiescope/symbols")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "zombiescope" / "symbols"
    monkeypatch.setenv("CACHE_DIRECTORY", "/var/cache/unit:/var/cache/other")
    assert default_directory() == Path("/var/cache/unit/symbols")
    monkeypatch.setenv("ZOMBIESCOPE_CACHE", "/c")
    assert default_directory() == Path("/c/symbols")
