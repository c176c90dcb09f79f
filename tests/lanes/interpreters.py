"""The Pythons of this machine that a wheel may be installed on: the one of .venv, those on PATH, of pyenv and of uv."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.lanes.requirements import Project


def supported(project: Project) -> list[str]:
    """["3.11", ...], as the classifiers of pyproject.toml say."""
    head = "Programming Language :: Python :: 3."
    minors = sorted(int(each.removeprefix(head)) for each in project.classifiers if each.startswith(head))
    return [f"3.{minor}" for minor in minors]


def found(version: str) -> str | None:
    """An interpreter of this version ("3.12") that runs."""
    return next((path for path in _candidates(version) if _runs(path, version)), None)


def _candidates(version: str) -> Iterator[str]:
    yield f"{sys.base_prefix}/bin/python{version}"
    if path := shutil.which(f"python{version}"):
        yield path
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local/share/uv/python")
    for directory, pattern in ((pyenv, f"{version}.*"), (uv, f"cpython-{version}.*")):
        yield from (str(each / "bin/python3") for each in sorted(directory.glob(pattern), reverse=True))


def _runs(path: str, version: str) -> bool:
    """A shim of pyenv is on PATH for versions that are not installed; it does not run."""
    code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() == version
