"""Builds zombiescope-mark from src/zombiescope/_mark.py, which is in this repository once."""

import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def source() -> Path:
    """In an sdist next to this file; in the repository where the package has it."""
    packed = HERE / "_mark.py"
    return packed if packed.exists() else ROOT / "src/zombiescope/_mark.py"


def version() -> str:
    packed = HERE / "PKG-INFO"
    text = packed.read_text() if packed.exists() else (ROOT / "pyproject.toml").read_text()
    found = re.search(r'^(?:version = "|Version: )([^"\s]+)', text, re.MULTILINE)
    assert found is not None
    return found[1]


class Build(build_py):
    def run(self) -> None:
        package = Path(self.build_lib) / "zombiescope_mark"
        package.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source(), package / "__init__.py")
        (package / "py.typed").touch()

    def get_source_files(self) -> list[str]:
        return []


class Pack(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        shutil.copyfile(source(), Path(base_dir) / "_mark.py")


setup(version=version(), cmdclass={"build_py": Build, "sdist": Pack})
