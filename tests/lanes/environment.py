"""A virtual environment with the built wheel in it, and the wheel itself. Both are below build/lanes."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lanes.requirements import ROOT

PLACE = ROOT / "build" / "lanes"
SOURCES = ("src", "packaging", "pyproject.toml", "setup.py", "README.md", "LICENSE")
"""What a wheel is made of."""
INSTALL_S = 900.0
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")


class LaneError(Exception):
    """An environment could not be made; the text says what pip said."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment."""

    place: Path

    @property
    def python(self) -> str:
        return str(self.place / "bin/python")

    @property
    def command(self) -> str:
        return str(self.place / "bin/zombiescope")

    def pip(self, *arguments: str) -> None:
        run([self.python, *PIP, *arguments])

    def versions(self) -> dict[str, str]:
        """Package -> version, as installed."""
        command = [self.python, "-m", "pip", "list", "--format", "freeze"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
        return dict(line.split("==", 1) for line in shown.split() if "==" in line)


def run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise LaneError(f"{' '.join(command)}: not done after {INSTALL_S:.0f} s") from error
    if done.returncode:
        raise LaneError(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")


def made(
    name: str,
    interpreter: str,
    wheel: Path,
    extras: Sequence[str],
    pins: Sequence[str],
    more: Sequence[str] = (),
    *,
    keep: bool = False,
) -> Environment:
    """The environment `name` with the wheel, its extras and `more`, all from binary packages, under these pins.

    `keep`: an environment with the same packages is used again, with the wheel of today.
    """
    here = Environment(PLACE / name)
    asked = "\n".join([interpreter, *extras, *pins, *more])
    stamp = here.place / "asked"
    if keep and stamp.exists() and stamp.read_text() == asked:
        here.pip("install", "--force-reinstall", "--no-deps", "--no-index", str(wheel))
        return here
    shutil.rmtree(here.place, ignore_errors=True)
    run([interpreter, "-m", "venv", str(here.place)])
    constraints = here.place / "constraints.txt"
    constraints.write_text("\n".join(pins) + "\n")
    wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    here.pip("install", "--only-binary", ":all:", "--constraint", str(constraints), wanted, *more)
    stamp.write_text(asked)
    return here


def wheel_for(interpreter: str, version: str) -> Path:
    """The wheel of these sources for this Python; built where it is not there already."""
    place = PLACE / "wheels" / f"{version}-{_digest()}"
    if not (found := list(place.glob("zombiescope-*.whl"))):
        for old in (PLACE / "wheels").glob(f"{version}-*"):
            shutil.rmtree(old)
        _build(_builder(interpreter, version), _copy(version), place)
        found = list(place.glob("zombiescope-*.whl"))
    return found[0]


def mark_wheel() -> Path:
    """The wheel of zombiescope-mark."""
    place = PLACE / "wheels" / "mark"
    shutil.rmtree(place, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="zombiescope-mark-") as copy:
        for source in ("packaging/mark", "src/zombiescope/_mark.py", "pyproject.toml"):
            target = Path(copy) / source
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / source).is_dir() else shutil.copyfile)(ROOT / source, target)
        _build(sys.executable, Path(copy) / "packaging/mark", place)
    return next(place.glob("*.whl"))


def _build(python: str, source: Path, place: Path) -> None:
    run([python, *PIP, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(place), str(source)])


def _builder(interpreter: str, version: str) -> str:
    """A Python with what building needs: this one, or one with requirements/wheels.txt."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return sys.executable
    here = Environment(PLACE / f"build-{version}")
    if not (here.place / "ready").exists():
        shutil.rmtree(here.place, ignore_errors=True)
        run([interpreter, "-m", "venv", str(here.place)])
        here.pip("install", "--require-hashes", "-r", "requirements/wheels.txt")
        (here.place / "ready").touch()
    return here.python


def _copy(version: str) -> Path:
    """A copy of the sources, which keeps the native module of the last build: compiling it takes most of the time."""
    place = PLACE / f"source-{version}"
    for old in sorted(place.rglob("*"), reverse=True):
        if old.is_file() and not old.name.startswith("_native"):
            old.unlink()
    for source in _files():
        target = place / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    return place


def _files() -> Iterator[Path]:
    for name in SOURCES:
        path = ROOT / name
        for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
            made_by_build = each.suffix in (".so", ".pyc") or each.name == "_native.c" or "egg-info" in str(each)
            if each.is_file() and not made_by_build:
                yield each


def _digest() -> str:
    digest = hashlib.sha256()
    for path in _files():
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
