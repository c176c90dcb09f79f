"""zombiescope as a user installs it: a wheel, a wheelhouse of what it needs, a virtual environment; no network.

The environment is made with the machine's own Python, in its own tree and without a network, and becomes a second
disk that is mounted at /opt/zombiescope. Doing that inside the emulated machine would take minutes at each boot.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import zombiescope
from zombiescope.base import python as _python
from zombiescope.lab import cache, debian, programs
from zombiescope.lab.failure import CannotBuildError
from zombiescope.lab.image import make_disk

PLACE = "/opt/zombiescope"
PYTHON = (3, 11)
"""The Python of the machine; the wheel holds a native module, so it has to be built with the same one."""

_DISK_BYTES = 1 << 30
_TOP = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
_KINDS = {".py", ".pyi", ".pyx", ".pxi", ".typed", ".json", ".zscope", ".toml"}


def source_tree() -> Path | None:
    """The source tree that this zombiescope runs from; None for an installed one."""
    place = Path(zombiescope.__file__).parents[2]
    return place if (place / "pyproject.toml").exists() and (place / "packaging").is_dir() else None


def product_disk() -> Path:
    """The disk with zombiescope installed; built again when any source file changed."""
    source = source_tree()
    if source is None:
        raise CannotBuildError("zombiescope can only be put into a machine from its source tree", "use a git checkout")
    requirements = source / "requirements/runtime.txt"
    parts = [part for path in _files(source) for part in (str(path.relative_to(source)), path.read_bytes())]
    recipe = (Path(__file__).read_bytes(), requirements.read_bytes(), debian.USERLAND, *debian.PACKAGES)
    return cache.entry("product", cache.key(*parts, *recipe), lambda into: _build(source, into)) / "disk"


def _files(source: Path) -> Iterator[Path]:
    yield from (source / name for name in _TOP)
    yield from sorted(path for path in (source / "packaging").rglob("*") if path.is_file())
    yield from sorted(path for path in (source / "src").rglob("*") if path.suffix in _KINDS and path.is_file())


def _build(source: Path, into: Path) -> None:
    programs.root("installing zombiescope into an image")
    if sys.version_info[:2] != PYTHON:
        mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise CannotBuildError(f"the machine has Python 3.11, and this is {mine}", "run it with python3.11")
    work, rooms = into / "work", into / "opt"
    rooms.mkdir()
    wheel = _wheel(source, work)
    house = _wheelhouse(source / "requirements/runtime.txt")
    tree = debian.userland()
    binds = {rooms: "/opt", wheel.parent: "/mnt", house: "/media"}
    pip = (
        f"{PLACE}/bin/pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-cache-dir",
        "--disable-pip-version-check",
    )
    script = f'python3 -m venv {PLACE} && exec "$@" --find-links /media "/mnt/{wheel.name}[agent]"'
    programs.in_tree(tree, "sh", "-c", script, "sh", *pip, bind=binds)
    make_disk(rooms / "zombiescope", into / "disk", _DISK_BYTES)
    cache.remove(rooms)
    cache.remove(work)


def _wheel(source: Path, work: Path) -> Path:
    """Built from a copy, so that the source tree stays as it is."""
    copy = work / "source"
    for path in _files(source):
        target = copy / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    out = work / "wheel"
    _pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", out, copy)
    return next(out.glob("zombiescope-*.whl"))


def _wheelhouse(requirements: Path) -> Path:
    """Wheels of everything it needs at run time, as locked and checked against its hashes."""

    def download(into: Path) -> None:
        _pip(
            "download",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--dest",
            into,
            "--requirement",
            requirements,
        )

    return cache.entry("wheelhouse", cache.key(f"{PYTHON}", requirements.read_bytes()), download)


def _pip(*arguments: str | Path) -> None:
    quiet = ("--quiet", "--disable-pip-version-check")
    programs.call(_python.safe("-m", "pip", *map(str, (arguments[0], *quiet, *arguments[1:]))))
