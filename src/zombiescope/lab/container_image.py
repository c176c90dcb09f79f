"""Images of containers without a registry: a tree with a static busybox, and the archives that runtimes import."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from zombiescope.lab import programs

APPLETS = ("sh", "cat", "false", "mkdir", "rmdir", "sleep", "true")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_DATE = "2026-01-01T00:00:00Z"


def tree(place: Path) -> Path:
    """The root directory of a container that can do no more than run a shell."""
    for name in ("bin", "data", "dev", "etc", "proc", "sys", "tmp"):
        (place / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(programs.find("busybox"), place / "bin/busybox")
    for applet in APPLETS:
        (place / "bin" / applet).unlink(missing_ok=True)
        (place / "bin" / applet).symlink_to("busybox")
    return place


def layer(root: Path) -> bytes:
    """The tree as a tar file, which `docker import` takes as an image."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(root, arcname=".")
    return packed.getvalue()


def docker_archive(root: Path, name: str, command: Sequence[str]) -> bytes:
    """What `docker save` would write of the tree as an image; `ctr images import` takes it without a Docker."""
    packed = layer(root)
    digest = hashlib.sha256(packed).hexdigest()
    config = json.dumps(_config(digest, command)).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": [f"{digest}/layer.tar"]}]
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for path, data in ((f"{digest}/layer.tar", packed), (config_name, config)):
            _add(archive, path, data)
        _add(archive, "manifest.json", json.dumps(manifest).encode())
    return whole.getvalue()


def _config(digest: str, command: Sequence[str]) -> dict[str, object]:
    return {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "created": _DATE,
        "config": {"Cmd": list(command), "Env": ["PATH=/bin"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": _DATE}],
    }


def _add(archive: tarfile.TarFile, path: str, data: bytes) -> None:
    entry = tarfile.TarInfo(path)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))
