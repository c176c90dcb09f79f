"""Where images are kept: $ZOMBIESCOPE_CACHE, else $XDG_CACHE_HOME/zombiescope, else ~/.cache/zombiescope.

An entry is a directory KIND/KEY, the key a hash over everything that went into it. It is built aside under a
lock and renamed when it is whole, so a build that was interrupted leaves nothing that could be taken for an
image. Entries are never changed: machines write to an overlay.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_ASIDE = ".building"

KEPT = {"debian": 2, "disk": 6, "wheelhouse": 2, "product": 3, "accelerator": 1, "kubernetes": 1}
"""What may be in the cache, and how many of each; nothing else there is ours to remove."""


def directory() -> Path:
    """The cache's own directory; it need not exist yet."""
    chosen = os.environ.get("ZOMBIESCOPE_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zombiescope"


def key(*parts: str | bytes) -> str:
    """A name for what these parts make together."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:16]


def find(kind: str, name: str) -> Path | None:
    """The entry if somebody built it already."""
    place = directory() / kind / name
    return place if place.is_dir() else None


def entry(kind: str, name: str, build: Callable[[Path], None]) -> Path:
    """The entry; `build` fills an empty directory if there is none yet."""
    place = directory() / kind / name
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with _locked(place.parent / f"{name}.lock"):
        if not place.is_dir():
            _build(place, build)
            _prune(place.parent, KEPT[kind])
    return place


def _build(place: Path, build: Callable[[Path], None]) -> None:
    aside = place.with_name(place.name + _ASIDE)
    remove(aside)
    aside.mkdir()
    try:
        build(aside)
        aside.rename(place)
    finally:
        remove(aside)


def _prune(kind: Path, kept: int) -> None:
    """Of the entries only the newest stay: every changed source file makes another. A machine that runs from one that
    goes has its files open."""
    built = [path for path in kind.iterdir() if path.is_dir() and not path.name.endswith(_ASIDE)]
    built.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for old in built[kept:]:
        remove(old)
        old.with_name(f"{old.name}.lock").unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove(path: Path) -> None:
    """Remove a tree if it is there."""
    if path.exists():
        shutil.rmtree(path)


def size_bytes(path: Path) -> int:
    """What a tree takes on disk; sparse files count for what they hold."""
    return sum(one.lstat().st_blocks * 512 for one in path.rglob("*"))


def clear() -> int:
    """Remove every image; answers the bytes freed."""
    place = directory()
    freed = 0
    for kind in KEPT:
        freed += size_bytes(place / kind) if (place / kind).exists() else 0
        remove(place / kind)
    return freed
