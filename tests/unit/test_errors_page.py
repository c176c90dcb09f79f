"""docs/errors.md lists every error that a person can meet, as the code has it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from tests.helpers.cli import Cli

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "errors_page.py"))
ERRORS = SCRIPT["errors"]()


def test_the_page_is_that_of_the_code() -> None:
    assert SCRIPT["PAGE"].read_text() == SCRIPT["page"](), "run scripts/errors_page.py"


def test_packages_that_raise_are_on_it() -> None:
    assert [name for name in SCRIPT["ROOMS"] if not (SCRIPT["SOURCE"] / name / "__init__.py").exists()] == []
    assert len(ERRORS) > 250


def test_most_say_what_helps_and_a_room_says_it_for_the_others() -> None:
    """Those that do not are wrong usage, whose words say it, or have what somebody else answered in them."""
    headings = {SCRIPT["ROOMS"][error.room] for error in ERRORS if error.fix is None}
    counted = {each: sum(SCRIPT["ROOMS"][one.room] == each and one.fix is None for one in ERRORS) for each in headings}
    assert {each for each, count in counted.items() if count > 4} <= set(SCRIPT["GENERAL"])
    without = [error for error in ERRORS if error.fix is None]
    assert len(without) < len(ERRORS) / 2


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (("info", "nowhere"), "there is no recording at"),
        (("events", "rec", "--kind", "nic_rest"), "there is no kind of event called"),
        (("heatmap", "rec", "-o", "x.png"), "the name must end in .html, .svg or .txt"),
        (("mark", "x"), "no recorder on this machine took the mark"),
    ],
)
def test_what_is_printed_is_on_it(words: tuple[str, ...], listed: str, tmp_path: Path) -> None:
    from tests.helpers.recordings import write_recording

    write_recording(tmp_path / "rec", seconds=5)
    done = Cli(tmp_path)(*words)
    assert done.code in (1, 2)
    assert listed in done.err
    assert listed in SCRIPT["PAGE"].read_text().replace("\\", "")
