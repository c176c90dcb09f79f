"""Standard error of a child: the reason of a crash is kept, and what is for people is passed on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from zombiescope.recorder.error_lines import MOST_LINE, ErrorLines

RAISES = "def f(): raise KeyError('no such thing')\nf()"
IN_A_HANDLER = "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ValueError('another')"
CRASHES = "import faulthandler, os, signal\nfaulthandler.enable(all_threads={})\nos.kill(os.getpid(), signal.SIGSEGV)"


def said(program: str) -> bytes:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).stderr


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (RAISES, "KeyError: 'no such thing' (<string>:1)"),
        (IN_A_HANDLER, "ValueError: another (<string>:4)"),
        (CRASHES.format(True), "Segmentation fault (<string>:3 in <module>)"),
        (CRASHES.format(False), "Segmentation fault (<string>:3 in <module>)"),
    ],
)
def test_a_crash_ends_in_its_reason_and_nothing_of_it_is_passed_on(program: str, reason: str) -> None:
    lines = ErrorLines()
    data = said(program)
    assert [text for at in range(0, len(data), 7) for text in lines.feed(data[at : at + 7])] == []
    assert lines.take_reason() == reason
    assert lines.take_reason() is None


def test_what_is_for_people_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZOMBIESCOPE_DEBUG", raising=False)
    lines = ErrorLines()
    assert lines.feed(b"12:00:00 warning: a core was lost\nhalf ") == ["12:00:00 warning: a core was lost"]
    assert lines.feed(b"a line\n" + said(RAISES) + b"after it\n") == ["half a line", "after it"]
    assert lines.last == "after it"
    monkeypatch.setenv("ZOMBIESCOPE_DEBUG", "1")
    assert len(ErrorLines().feed(said(RAISES))) > 2


def test_a_line_without_an_end_is_bounded() -> None:
    lines = ErrorLines()
    for _ in range(100):
        lines.feed(b"x" * 10_000)
    (text,) = lines.feed(b"\n")
    assert len(text) == MOST_LINE
