"""Children are our own interpreter, and load our own modules, wherever a command is run."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from zombiescope import _python

SOURCE = Path(__file__).parents[2] / "src" / "zombiescope"


@pytest.mark.parametrize("name", ["zombiescope.recorder", "zombiescope.web", "zombiescope.recording.compact"])
def test_what_lies_in_the_current_directory_is_not_run(name: str, tmp_path: Path) -> None:
    # GIVEN a directory in which somebody left packages with our names and those of the standard library
    for package in ("zombiescope", "json", "typer"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("open('planted', 'w')\n")
    # WHEN a child is started there
    subprocess.run(_python.module(name, "--help"), cwd=tmp_path, capture_output=True, timeout=60, check=False)
    # THEN none of them was run; without the option one is
    assert not (tmp_path / "planted").exists()
    unsafe = [sys.executable, "-m", name, "--help"]
    subprocess.run(unsafe, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert (tmp_path / "planted").exists()


@pytest.mark.parametrize("path", ["", ":/nowhere", ".:/nowhere", "/nowhere:"])
def test_the_current_directory_does_not_come_in_by_the_search_path(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json").mkdir()
    (tmp_path / "json/__init__.py").write_text("open('planted', 'w')\n")
    monkeypatch.setenv("PYTHONPATH", path)
    command = _python.safe("-c", "import json")
    subprocess.run(command, cwd=tmp_path, env=_python.environment(), capture_output=True, timeout=60, check=False)
    assert not (tmp_path / "planted").exists()
    assert _python.environment().get("PYTHONPATH") in (None, "/nowhere")


def test_nobody_starts_our_interpreter_in_another_way() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name == "_python.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            is_list = isinstance(node, ast.List | ast.Tuple) and node.elts
            named = is_list and ast.unparse(node.elts[0])  # type: ignore[attr-defined]
            assert named != "sys.executable", f"{path.relative_to(SOURCE)}:{node.lineno} starts it without -P"  # type: ignore[attr-defined]
