"""Every command has a man page that says what its --help says, and that roff reads without a word."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import typer.main

from zombiescope.cli import manual
from zombiescope.cli.main import application

PAGES = manual.pages()


def test_every_command_has_one() -> None:
    commands = typer.main.get_command(application()).commands  # type: ignore[attr-defined]
    assert {f"zombiescope-{name}.1" for name in commands} <= set(PAGES)
    assert "zombiescope-lab-run.1" in PAGES
    assert all(f"zombiescope\\-{name}(1)" in PAGES["zombiescope.1"] for name in commands)


def test_it_has_every_option_and_every_example() -> None:
    page = PAGES["zombiescope-diagnose.1"]
    for words in ("\\-\\-incident ID", "\\-\\-fail\\-on SEVERITY", "diagnose \\-\\-live 30s"):
        assert words in page
    assert ".B \\-\\-by subsecond|core" in PAGES["zombiescope-heatmap.1"]
    assert "[bold]" not in "".join(PAGES.values())


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_roff_reads_them_without_a_warning(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", *sorted(PAGES)],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_no_line_is_an_instruction_by_accident() -> None:
    assert manual._text(".so /etc/passwd") == "\\&.so /etc/passwd"
    assert manual._text("a\\fBb") == "a\\efBb"
