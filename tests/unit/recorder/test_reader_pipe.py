"""A reader's end of its pipes: lines that come in pieces, lines that are no JSON, and an end with its input."""

from __future__ import annotations

import json
import subprocess
import sys

from zombiescope.recorder import reader_pipe

ECHOES = """
from zombiescope.recorder import reader_pipe

class Echo:
    said = None
    def follow(self, said): self.said = said
    def turn(self, now_s):
        said, self.said = self.said, None
        return None if said is None else {"heard": said}
    def wait_s(self, now_s): return 10.0

reader_pipe.run(Echo())
"""


def test_a_line_in_pieces_is_one_line() -> None:
    said, rest = reader_pipe.lines(b'{"a": 1}\n{"b"')
    assert said == [{"a": 1}]
    assert reader_pipe.lines(rest + b": 2}\n") == ([{"b": 2}], b"")


def test_what_is_no_json_is_passed_over_and_what_has_no_end_is_bounded() -> None:
    assert reader_pipe.lines(b"{\n" + b"[" * 100_000 + b"\n[1]\n") == ([[1]], b"")
    assert len(reader_pipe.lines(b"x" * 10**6)[1]) == reader_pipe.MOST_INPUT


def test_a_reader_hears_answers_and_ends_with_its_input() -> None:
    """Also where the answer is larger than a pipe holds."""
    long = "x" * 60_000
    with subprocess.Popen([sys.executable, "-c", ECHOES], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as echo:
        assert echo.stdin is not None
        assert echo.stdout is not None
        for _ in range(3):
            echo.stdin.write(json.dumps([long]).encode() + b"\n")
            echo.stdin.flush()
            while (said := json.loads(echo.stdout.readline())) == reader_pipe.BEAT:
                pass
            assert said == {"heard": [long]}
        echo.stdin.close()
        assert echo.wait(20) == 0


def test_the_memory_of_this_process_is_known() -> None:
    assert 1 << 20 < reader_pipe.rss_bytes() < 1 << 40
