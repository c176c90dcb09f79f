"""`make lint` finds words that the style guide rules out, and only those."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "plain_english.py"))
WORDS = SCRIPT["Words"](SCRIPT["GUIDE"].read_text())


def found(text: str) -> list[str]:
    return [word for _, word in WORDS.found(text)]


def test_no_file_uses_a_word_that_the_guide_rules_out() -> None:
    assert [str(each) for each in SCRIPT["check"](SCRIPT["files"](), WORDS)] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the log is said to be full", ["is said"]),
        ("Nobody\nknows", ["nobody"]),
        ("it stands\nstill", ["stands still"]),
        ("this is no terminal", ["is no"]),
        ("there is no terminal, and it is no longer there", []),
        ("user-nobody or nobody-else", []),
        ("nobody waits for it", []),
    ],
)
def test_a_word_is_found_across_lines_and_not_inside_others(text: str, words: list[str]) -> None:
    assert found(text) == words


def test_code_in_pages_and_internal_docstrings_are_left_out() -> None:
    page = "a `nobody` b\n\n```sh\nnobody here\n```\n\n    nobody indented\n\nnobody\n"
    prose = SCRIPT["in_text"](page, markdown=True)
    assert found(prose) == ["nobody"]
    assert prose.count("\n") == page.count("\n")
    source = '"""nobody, module"""\ndef other():\n    """nobody, other"""\n    x = "nobody, string"\n    y = "nobody"\n'
    command = 'def command():\n    """nobody, help"""\n'
    assert [text for _, text in SCRIPT["strings"](source + command)] == ["nobody, string", "nobody, help"]


def test_design_records_have_one_form_of_heading_and_are_listed_with_their_status() -> None:
    folder = ROOT / "docs" / "design"
    index = (folder / "index.md").read_text()
    for path in sorted(folder.glob("[0-9]*.md")):
        heading = path.read_text().partition("\n")[0]
        assert re.fullmatch(rf"# {path.name[:4]}: [A-Z].*[^.]", heading), path.name
        row = next((line for line in index.splitlines() if line.startswith(f"| [{path.name[:4]}]({path.name})")), "")
        assert row.endswith(("| accepted |", ") |")), f"{path.name} is not in docs/design/index.md: make generated"
        assert heading.partition(": ")[2] in row, f"{path.name}: make generated"
    assert "Missing numbers" in index
