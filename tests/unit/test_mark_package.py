"""zombiescope-mark: one module without dependencies, built from the same source as `zombiescope.mark`."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest
from tests.lanes import environment, interpreters, requirements

ROOT = Path(__file__).resolve().parents[2]
OLDEST = "3.9"
"""As packaging/mark/pyproject.toml says: a job's Python may be older than ours."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    patch = pytest.MonkeyPatch()
    patch.setattr(environment, "PLACE", tmp_path_factory.mktemp("lanes"))
    yield environment.mark_wheel()
    patch.undo()


def test_it_is_the_same_source_with_the_same_version_and_needs_nothing(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        source = opened.read("zombiescope_mark/__init__.py")
        metadata = opened.read(next(name for name in opened.namelist() if name.endswith("METADATA"))).decode()
    assert names == {"zombiescope_mark/__init__.py", "zombiescope_mark/py.typed"}
    assert source == (ROOT / "src/zombiescope/_mark.py").read_bytes()
    said = Parser().parsestr(metadata)
    assert said.get_all("Requires-Dist") is None
    assert said["Requires-Python"] == f">={OLDEST}"
    assert f'version = "{said["Version"]}"' in (ROOT / "pyproject.toml").read_text()
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.mark.parametrize("python", [OLDEST, "3.10", *interpreters.supported(requirements.project())])
def test_a_mark_arrives_from_a_python_that_has_nothing_else(python: str, wheel: Path, tmp_path: Path) -> None:
    interpreter = interpreters.found(python)
    if interpreter is None:
        pytest.skip(f"needs Python {python}")
    # GIVEN a recorder's socket, and the wheel on the path of a Python without site packages
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as recorder:
        recorder.bind(str(tmp_path / "mark.sock"))
        recorder.settimeout(10)
        code = f"import sys; sys.path.append({str(wheel)!r}); from zombiescope_mark import mark; print(mark('epoch 1'))"
        done = subprocess.run(
            [interpreter, "-S", "-c", code], capture_output=True, text=True, timeout=60, check=False,
            env={"ZOMBIESCOPE_RUNTIME_DIR": str(tmp_path)},
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("True\n", "")
        assert json.loads(recorder.recv(4096))["text"] == "epoch 1"


def test_the_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    # GIVEN the sdist, unpacked where the repository is not
    build = "import sys; from setuptools import build_meta as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"
    copy = tmp_path / "repository/packaging/mark"
    for name in ("pyproject.toml", "setup.py", "README.md"):
        copy.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / "packaging/mark" / name).read_bytes())
    for name in ("pyproject.toml", "src/zombiescope/_mark.py"):
        (tmp_path / "repository" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "repository" / name).write_bytes((ROOT / name).read_bytes())

    def built(kind: str, place: Path) -> Path:
        command = [sys.executable, "-c", build, kind, str(tmp_path)]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120, check=True)
        return tmp_path / done.stdout.split()[-1]

    packed = built("build_sdist", copy)
    subprocess.run(["tar", "-xzf", packed, "-C", tmp_path], check=True, timeout=60)
    again = built("build_wheel", tmp_path / packed.name.removesuffix(".tar.gz"))
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        for name in ("zombiescope_mark/__init__.py", "zombiescope_mark/py.typed"):
            assert first.read(name) == second.read(name)
    assert again.name == wheel.name
