"""Archives that runtimes import: what is in them refers to what is in them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from zombiescope.lab import container_image, programs


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "busybox").write_bytes(b"a program")
    monkeypatch.setattr(programs, "find", lambda _: str(tmp_path / "busybox"))
    return container_image.tree(tmp_path / "tree")


def test_a_tree_has_a_shell(tree: Path) -> None:
    assert (tree / "bin/sh").resolve() == (tree / "bin/busybox").resolve()
    assert container_image.tree(tree) == tree, "made again over the one before"


def test_an_archive_is_whole(tree: Path) -> None:
    packed = container_image.docker_archive(tree, "registry.local/ecs-agent:1.2", ["/bin/sh"])
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        held = {one.name: archive.extractfile(one).read() for one in archive.getmembers()}  # type: ignore[union-attr]
    (image,) = json.loads(held["manifest.json"])
    config = json.loads(held[image["Config"]])
    (layer,) = image["Layers"]
    assert image["RepoTags"] == ["registry.local/ecs-agent:1.2"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(held[layer]).hexdigest()}"]
    assert image["Config"] == f"{hashlib.sha256(held[image['Config']]).hexdigest()}.json"
    with tarfile.open(fileobj=io.BytesIO(held[layer])) as files:
        assert "./bin/busybox" in files.getnames()
