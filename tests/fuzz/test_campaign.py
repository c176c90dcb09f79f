"""A campaign that is cut short: what is most exposed had most, and nothing that was done is forgotten."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.fuzz.__main__ import PAGE, _owing
from tests.fuzz.campaign import Book, table
from tests.fuzz.targets import BY_NEIGHBOURS, BY_STRANGERS, TARGETS, weight

OPTIONS = argparse.Namespace(names=[], executions=2_000_000, python=False, native=False)


def had(name: str, executions: int) -> dict[str, object]:
    return {"name": name, "executions": executions, "seconds": 2.0, "coverage": 7, "status": 0}


def test_the_ranks_are_of_targets_that_there_are() -> None:
    assert TARGETS.keys() >= BY_NEIGHBOURS | BY_STRANGERS
    assert not BY_NEIGHBOURS & BY_STRANGERS - {"ring-records", "ring-memory"}
    assert weight("elf") > weight("pack") > weight("proc-loadavg")


def test_who_has_had_least_of_what_it_should_comes_next(tmp_path: Path) -> None:
    book = Book(tmp_path)
    for name in TARGETS:
        book.note(had(name, 1000 * weight(name) // TARGETS[name].cost), sanitized=False)
    book.note(had("proc-maps", 10), sanitized=False)
    book.of["proc-stat"].executions = book.of["proc-cmdline"].executions = 600
    groups = dict(_owing(book, OPTIONS, set()))
    assert groups[False].index("proc-cmdline") < groups[False].index("proc-stat") < groups[False].index("proc-maps")


def test_a_target_that_has_had_all_is_left_alone(tmp_path: Path) -> None:
    book = Book(tmp_path)
    book.note(had("pack", 20_000), sanitized=False)
    assert "pack" not in dict(_owing(book, OPTIONS, set()))[False]


def test_a_checkout_goes_on_from_the_table_of_the_page(tmp_path: Path) -> None:
    book = Book(tmp_path)
    book.note(had("elf", 36_484), sanitized=True)
    book.note({**had("pack", 653), "status": 1, "fault": "KeyError", "crashes": []}, sanitized=False)
    again = Book(tmp_path / "other", before=table(book))
    assert table(again) == table(book)
    again.note(had("elf", 16), sanitized=True)
    assert again.of["elf"].executions == 36_500
    assert Book(tmp_path / "other").of["elf"].executions == 36_500


def test_the_page_has_a_table_that_is_understood() -> None:
    known = Book(Path("/nonexistent"), before=PAGE.read_text()).of
    assert len(known) >= 75
    assert known.keys() <= TARGETS.keys()
