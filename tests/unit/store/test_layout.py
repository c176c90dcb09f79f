"""Which files of a recording count, after a crash at any step of compaction."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from zombiescope.store import layout
from zombiescope.store.layout import Manifest, Span, TableFacts
from zombiescope.store.store import Directory, StoredFile

FROM_US, TO_US = 1_760_000_000_000_000, 1_760_000_900_000_000
MANIFEST = Manifest(
    "lab-1", FROM_US, TO_US, "boot", ("log/1760000000000000.seg",), {"samples": TableFacts(5, 100, FROM_US, TO_US)},
    {"stack": 3}, (Span(FROM_US, TO_US, FROM_US, "boot", 0, 2, 0, 900),), ("a frame",),
)  # fmt: skip


def put(root: Path, name: str, data: bytes = b"") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(data)


def test_a_manifest_reads_back_as_it_was() -> None:
    again = Manifest.from_json(MANIFEST.to_json())
    assert again == MANIFEST
    assert again.size_bytes == 100 + len(MANIFEST.to_json())
    assert again.name == "date=2025-10-09/part-1760000000000000-1760000900000000.json"


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"part": 1}', MANIFEST.to_json()[:-20]])
def test_what_is_no_manifest_is_named_and_the_others_are_read(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, MANIFEST.name, MANIFEST.to_json())
    put(tmp_path, "date=2025-10-09/part-1760000900000000-1760001800000000.json", data)
    manifests, damage = layout.read_manifests(Directory(tmp_path))
    assert manifests == [MANIFEST]
    assert [name for name, _ in damage] == ["date=2025-10-09/part-1760000900000000-1760001800000000.json"]


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../x", "log/../../1760000000000000.seg", "1760000000000000.seg/x", "", "x.seg", 7, None]
)
def test_a_manifest_that_names_what_is_no_segment_is_none(name: object) -> None:
    """What it names is deleted when it is cleaned up after."""
    document = json.loads(MANIFEST.to_json()) | {"segments": [name]}
    with pytest.raises(ValueError, match=r"segment|not a manifest"):
        Manifest.from_json(json.dumps(document).encode())


def test_manifests_come_in_the_order_of_time_whatever_their_dates(tmp_path: Path) -> None:
    later = Manifest("lab-2", FROM_US + 86_400_000_000, TO_US + 86_400_000_000, "boot", (), {}, {})
    for each in (later, MANIFEST):
        put(tmp_path, each.name, each.to_json())
    assert layout.read_manifests(Directory(tmp_path))[0] == [MANIFEST, later]


def test_parquet_that_no_manifest_names_is_left_over_and_nothing_else_is() -> None:
    """A crash before the manifest was renamed into place; and one while a file was written."""
    orphan = "date=2025-10-09/samples-1760000900000000-1760001800000000.parquet"
    half = "date=2025-10-09/cores-1760000900000000.tmp"
    names = [MANIFEST.file("samples"), MANIFEST.name, orphan, half, "log/1760000900000000.seg", "node.json", "x.tmp"]
    left = layout.uncommitted([StoredFile(name, 1) for name in names], [MANIFEST])
    assert sorted(left) == sorted([orphan, half])


def test_only_names_of_segments_are_segments() -> None:
    start = "1760000000000000"
    names = [f"log/{start}.seg", f"log/{start}.seg.tmp", "log/17.seg", f"rollup/{start}.seg", "log/x"]
    found = layout.segment_files([StoredFile(f"node=lab/{name}", 5) for name in names], "node=lab/")
    assert [(each.name, each.start_us) for each in found] == [(names[0], FROM_US), (names[3], FROM_US)]


def test_a_small_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "node.json"
    layout.write_synced(file, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        layout.write_synced(file, b"new and longer")
    assert file.read_bytes() == b"old"
