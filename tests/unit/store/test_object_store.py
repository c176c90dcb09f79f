"""A store that is busy is asked again, one that refuses is not; a file of a recording is read as from a disk. The real
protocol is tried in tests/ray."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.store import object_store
from zombiescope.store.object_store import ObjectStore
from zombiescope.store.store import NotARecordingError, open_store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    (tmp_path / "node=a" / "log").mkdir(parents=True)
    (tmp_path / "node=a" / "node.json").write_bytes(b"{}")
    (tmp_path / "node=a" / "log" / "x.seg").write_bytes(b"0123456789")
    monkeypatch.setattr(object_store, "_FIRST_WAIT_S", 0.0)
    return ObjectStore(f"file://{tmp_path}")


def test_names_sizes_and_bytes_are_those_of_the_files(store: ObjectStore) -> None:
    assert store.folders() == ["node=a"]
    assert [(each.name, each.size_bytes) for each in store.entries("node=a/")] == [
        ("node=a/log/x.seg", 10), ("node=a/node.json", 2),
    ]  # fmt: skip
    assert store.read("node=a/node.json") == b"{}"
    assert all(each.changed_us for each in store.objects())
    with pytest.raises(FileNotFoundError):
        store.read("node=a/none")


def test_a_large_file_is_read_in_ranges(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "WHOLE_BYTES", 4)
    store.entries("")
    with store.open("node=a/log/x.seg") as file:
        file.seek(7)
        assert file.read() == b"789"


def test_a_busy_store_is_asked_again(store: ObjectStore) -> None:
    answers: list[OSError | bytes] = [OSError("HTTP status 503 SlowDown"), OSError("timeout"), b"data"]

    def request() -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    assert store._asked(request, "x") == b"data"


@pytest.mark.parametrize(("why", "asked"), [("ACCESS_DENIED", 1), ("SlowDown", object_store._TRIES)])
def test_what_is_refused_is_said_with_the_name_of_the_file(store: ObjectStore, why: str, asked: int) -> None:
    calls = []

    def request() -> bytes:
        calls.append(1)
        raise OSError(why)

    with pytest.raises(OSError, match=f"x.seg: the object store answered: {why}"):
        store._asked(request, "x.seg")
    assert len(calls) == asked


def test_an_address_that_nobody_knows_is_said() -> None:
    with pytest.raises(NotARecordingError, match="cannot be opened"):
        open_store("gopher://x/y")
