"""Hints are commands that can be typed where they are printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from zombiescope.cli import typed


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As after `make setup`: the command is .venv/bin/zombiescope, and not on the PATH."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/zombiescope").touch(0o755)
    (tmp_path / "Makefile").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(sys, "argv", [".venv/bin/zombiescope", "up", "my dir"])
    return tmp_path


def test_in_a_clone_hints_name_the_path(clone: Path) -> None:
    said = typed.as_typed("no recorder runs; 'zombiescope up' starts one (zombiescope: a name, not a command)")
    assert said == "no recorder runs; '.venv/bin/zombiescope up' starts one (zombiescope: a name, not a command)"
    assert typed.demo() == "make demo"


def test_sudo_needs_the_whole_path(clone: Path) -> None:
    assert typed.as_root() == f"sudo {clone}/.venv/bin/zombiescope up 'my dir'"
    assert typed.as_root("check") == f"sudo {clone}/.venv/bin/zombiescope check"


def test_on_the_path_hints_name_the_command(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{clone}/.venv/bin:/usr/bin")
    monkeypatch.setattr(sys, "argv", [f"{clone}/.venv/bin/zombiescope", "up"])
    assert typed.as_typed("'zombiescope up' starts one") == "'zombiescope up' starts one"
    assert typed.demo() == "zombiescope demo"


@pytest.mark.parametrize("text", ["/bin/zombiescope up", "my-zombiescope up", "a.zombiescope up", "zombiescope:"])
def test_what_is_no_hint_stays(text: str, clone: Path) -> None:
    assert typed.as_typed(text) == text
