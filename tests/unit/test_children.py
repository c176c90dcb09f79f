"""Children are our own interpreter, and load our own modules, wherever a command is run."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from zombiescope.base import python as _python

SOURCE = Path(__file__).parents[2] / "src" / "zombiescope"
OF_OTHER_PROGRAMS = {"lab/docker.py", "lab/guest_agent.py"}
"""They start a Docker, and whatever somebody wants to run in a machine of the laboratory."""


@pytest.mark.parametrize("name", ["zombiescope.recorder", "zombiescope.web", "zombiescope.store.compact"])
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


@pytest.mark.parametrize("path", ["", ":/nowhere", ".", "bin:/nowhere:", "/nowhere"])
def test_a_program_in_the_current_directory_is_not_run(path: str, tmp_path: Path) -> None:
    """`docker` and `systemctl` are found by PATH. The command itself is a stand-in: it starts one of them."""
    for place in (tmp_path, tmp_path / "bin"):
        place.mkdir(exist_ok=True)
        (place / "docker").write_text("#!/bin/sh\n: >planted\n")
        (place / "docker").chmod(0o755)
    code = (
        "import subprocess; from zombiescope.base import python as _python; from zombiescope.cli import main\n"
        "def run(_):\n"
        "    for environment in (None, _python.environment()):\n"
        "        try: subprocess.run(['docker', 'ps'], env=environment)\n"
        "        except FileNotFoundError: pass\n"
        "    return 7\n"
        "main.run = run; main.main()"
    )
    environment = {**_python.environment(), "PATH": path}
    done = subprocess.run(_python.safe("-c", code), cwd=tmp_path, env=environment, timeout=60, check=False)
    assert done.returncode == 7
    assert not (tmp_path / "planted").exists()


def test_nobody_starts_our_interpreter_in_another_way() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).as_posix() == "base/python.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            is_list = isinstance(node, ast.List | ast.Tuple) and node.elts
            named = is_list and ast.unparse(node.elts[0])  # type: ignore[attr-defined]
            assert named != "sys.executable", f"{path.relative_to(SOURCE)}:{node.lineno} starts it without -P"  # type: ignore[attr-defined]


def _calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]


def test_every_interpreter_of_ours_is_given_an_environment() -> None:
    """By whoever starts it: a child that inherits ours has whatever PYTHONPATH says."""
    started = 0
    for path in sorted(SOURCE.rglob("*.py")):
        if "_python" not in path.read_text():
            continue
        for call in _calls(path):
            if ast.unparse(call.func) in ("subprocess.Popen", "subprocess.run", "os.posix_spawn", "os.execve"):
                given = len(call.args) >= 3 or any(keyword.arg == "env" for keyword in call.keywords)
                assert given, f"{path.relative_to(SOURCE)}:{call.lineno}"
                started += 1
    assert started >= 8


def test_nobody_hands_on_our_environment_as_it_is() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).as_posix() in {"base/python.py", *OF_OTHER_PROGRAMS}:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            whole = isinstance(node, ast.Dict) and None in node.keys and "os.environ" in ast.unparse(node)
            assert not whole, f"{path.relative_to(SOURCE)}:{node.lineno}"  # type: ignore[attr-defined]
