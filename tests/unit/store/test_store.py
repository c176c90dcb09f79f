"""A directory and a pack are the same to a reader; what is neither says so."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fuzz.target import FOUND

from zombiescope.store.store import NotARecordingError, Pack, Store, StoredFile, open_store

FILES = {"node=a/node.json": b"{}", "node=a/log/1.seg": bytes(range(256)) * 40, "node=b/node.json": b"[]"}


def directory(root: Path) -> Store:
    for name, data in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return open_store(root)


def pack(root: Path, method: int = zipfile.ZIP_STORED) -> Store:
    with zipfile.ZipFile(root / "x.zscope", "w", method) as archive:
        for name, data in FILES.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            info.extra = b"\x99\x99\x04\x00abcd"  # the local header is then longer than the directory's entry says
            archive.writestr(info, data)
    return open_store(root / "x.zscope")


@pytest.fixture(params=[directory, pack], ids=["directory", "pack"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = request.param(tmp_path)
    yield made
    made.close()


def test_the_same_names_sizes_and_bytes(store: Store) -> None:
    assert store.folders() == ["node=a", "node=b"]
    assert store.entries("node=a/") == [StoredFile("node=a/log/1.seg", 10_240), StoredFile("node=a/node.json", 2)]
    assert store.entries("node=c/") == []
    assert {name: store.read(name) for name in FILES} == FILES


def test_a_reader_seeks_and_stops_at_the_end_of_its_member(store: Store) -> None:
    with store.open("node=a/log/1.seg") as file:
        assert file.seek(-6, os.SEEK_END) == 10_234
        assert file.read(100) == bytes(range(250, 256))
        assert file.read(100) == b""
        file.seek(255)
        assert file.read(2) == b"\xff\x00"


def test_what_vanished_meanwhile_is_an_ordinary_error(store: Store) -> None:
    with pytest.raises(FileNotFoundError):
        store.open("node=a/log/2.seg")


def test_a_member_that_was_deflated_is_refused(tmp_path: Path) -> None:
    store = pack(tmp_path, zipfile.ZIP_DEFLATED)
    with pytest.raises(NotARecordingError, match="deflated"):
        store.read("node=a/log/1.seg")
    store.close()


def test_a_pack_whose_member_is_gone_is_damaged_and_not_another_one(tmp_path: Path) -> None:
    pack(tmp_path).close()
    file = tmp_path / "x.zscope"
    data = bytearray(file.read_bytes())
    data[:4] = b"\0\0\0\0"
    file.write_bytes(data)
    store = open_store(file)
    with pytest.raises(OSError, match="damaged at byte 0"):
        store.read("node=a/node.json")
    store.close()


@pytest.mark.parametrize("data", [b"", b"no zip at all", b"PK\x03\x04 cut off"])
def test_a_file_that_is_no_pack_says_so(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(NotARecordingError, match="is not a recording"):
        open_store(tmp_path / "x")


def test_a_place_where_nothing_is_says_how_to_start(tmp_path: Path) -> None:
    with pytest.raises(NotARecordingError, match="zombiescope record"):
        open_store(tmp_path / "nowhere")


def test_links_to_directories_are_not_followed(tmp_path: Path) -> None:
    store = directory(tmp_path / "recording")
    (tmp_path / "recording" / "node=a" / "again").symlink_to(tmp_path, target_is_directory=True)
    assert [entry.name for entry in store.entries("node=a/")] == ["node=a/log/1.seg", "node=a/node.json"]


@pytest.mark.parametrize("name", ["node.json", "log/2.seg"])
def test_links_and_pipes_are_no_files_of_a_recording(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("{}")
    store = directory(tmp_path / "recording")
    place = tmp_path / "recording" / "node=a" / name
    place.unlink(missing_ok=True)
    place.symlink_to(tmp_path / "secret")
    assert f"node=a/{name}" not in [entry.name for entry in store.entries("")]
    with pytest.raises(OSError, match="symbolic links"):
        store.read(f"node=a/{name}")
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(FileNotFoundError):
        store.read(f"node=a/{name}")


def test_a_document_has_a_bound(tmp_path: Path) -> None:
    store = directory(tmp_path / "recording")
    with (tmp_path / "recording" / "node=a" / "node.json").open("r+b") as file:
        file.truncate(1 << 40)  # a hole, on any disk
    with pytest.raises(OSError, match="larger than 32 MB"):
        store.read("node=a/node.json")


def test_a_member_without_a_name_is_none_of_the_recording(tmp_path: Path) -> None:
    sent = tmp_path / "x.zscope"
    sent.write_bytes((FOUND / "pack" / "member-without-a-name").read_bytes())
    store = Pack(sent)
    assert [entry.name for entry in store.entries("")] == ["node=n/node.json"]
    store.close()
