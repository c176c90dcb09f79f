"""Whatever takes longer than a second shows that it works, to a person and to nobody else."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers.recordings import write_recording

from zombiescope.cli import output, progress
from zombiescope.cli.main import run


class Terminal(io.StringIO):
    """A stand-in for one: it remembers when it was first written to."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "s" in text:
            self.drawn.set()
        return super().write(text)

    @property
    def visible(self) -> str:
        """What is left on the last line."""
        return self.getvalue().rpartition("\x1b[K")[2]


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Called in the test itself: pytest puts its own stream back after fixtures."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setattr(progress, "AFTER_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    return made


def test_it_says_what_it_does_and_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    with progress.shown("reading rec"):
        assert terminal.drawn.wait(30)
        assert "reading rec" in terminal.visible
    assert terminal.visible == ""


def test_where_the_amount_is_known_it_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    with progress.shown("looking"):
        progress.update(4, 16, "looking at suspicious moments")
        assert terminal.drawn.wait(30)
    assert re.search(r"looking at suspicious moments  ━{6}╌{18} 4 of 16  \d+ s", terminal.getvalue())


@pytest.mark.parametrize("say", [lambda: output.note("found it"), lambda: output.console().print("found it")])
def test_whoever_prints_finds_an_empty_line(monkeypatch: pytest.MonkeyPatch, say: Callable[[], None]) -> None:
    terminal = on_terminal(monkeypatch)
    with progress.shown("reading rec"):
        assert terminal.drawn.wait(30)
        say()
        before = terminal.getvalue()
        time.sleep(0.5)  # it does not come back
        assert terminal.getvalue() == before
    assert "reading" not in terminal.visible


def test_work_inside_of_work_has_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    with progress.shown("outer"):
        with progress.shown("inner"):
            assert terminal.drawn.wait(30)
            assert "inner" in terminal.visible
        assert terminal.visible == ""


@pytest.mark.parametrize(("stream", "term"), [(io.StringIO(), "xterm"), (Terminal(), "dumb")])
def test_a_pipe_and_a_dumb_terminal_get_nothing(
    stream: io.StringIO, term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "AFTER_S", 0.0)
    monkeypatch.setenv("TERM", term)
    with progress.shown("reading"):
        time.sleep(0.5)
    assert stream.getvalue() == ""


def test_a_long_name_does_not_break_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    with progress.shown(f"reading /{'x' * 300}\x1b[31m"):
        assert terminal.drawn.wait(30)
    assert max(len(line) for line in re.split(r"\r\x1b\[K", terminal.getvalue())) <= 80


def test_a_command_shows_it_before_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = on_terminal(monkeypatch)
    write_recording(tmp_path / "rec", seconds=20)
    from zombiescope.documents import stacks

    answer = stacks.answer

    def slow(*arguments: object) -> object:
        assert terminal.drawn.wait(30)
        return answer(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(stacks, "answer", slow)
    assert run(["stacks", str(tmp_path / "rec")]) == 0
    assert f"reading {tmp_path}"[:40] in terminal.getvalue()
    assert terminal.visible == ""
