"""A long diagnosis shows how far it is, to a person and to nobody else."""

from __future__ import annotations

import io
import sys

import pytest

from zombiescope.commands import diagnose


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, looks: int) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with diagnose._progress() as progress:
        for number in range(looks):
            if progress is not None:
                progress(number, looks)
    return stream.getvalue()


def test_a_terminal_is_told_how_many_places_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    said = told(Terminal(), monkeypatch, 16)
    assert "looking at suspicious moments" in said
    assert "/16" in said


def test_a_short_window_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "looking" not in told(Terminal(), monkeypatch, 1)


def test_a_pipe_and_a_journal_get_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(io.StringIO(), monkeypatch, 16) == ""
