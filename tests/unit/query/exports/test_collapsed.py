"""Collapsed stacks: every stack and its count."""

from __future__ import annotations

import re
from collections import Counter
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from tests.helpers import truth

from zombiescope.query.exports import collapsed
from zombiescope.store.reader import Recording


def lines(recording: Recording, **options: Any) -> list[tuple[tuple[str, ...], int]]:
    out = BytesIO()
    collapsed.write(truth.samples(recording), out, **options)
    found = []
    for line in out.getvalue().decode().splitlines():
        stack, _, count = line.rpartition(" ")
        found.append((tuple(unquote(frame) for frame in stack.split(";")), int(count)))
    return found


def test_every_stack_and_count_with_the_name_of_the_task_first(odd: Recording) -> None:
    expected = Counter((row.comm or "?", *row.names) for row in truth.rows(odd))
    assert lines(odd) == sorted(expected.items(), key=lambda item: lines(odd).index(item))
    assert dict(lines(odd)) == expected


def test_a_stack_has_one_line(recording: Recording) -> None:
    found = lines(recording, first=None)
    assert len({stack for stack, _ in found}) == len(found)
    assert dict(found) == truth.by_stack(truth.rows(recording))


def test_names_that_would_look_like_frames_are_escaped() -> None:
    assert collapsed.escaped("Lorg/Foo;.run") == "Lorg/Foo%3B.run"
    assert collapsed.escaped("50% of a%3Bb") == "50% of a%253Bb"
    for name in ("a;b", "a%3Bb", "a%25b", "100%", "two\nlines", "%zz"):
        assert unquote(collapsed.escaped(name)) == name


def test_frames_are_marked_on_request(odd: Recording) -> None:
    frames = {frame for stack, _ in lines(odd, annotate=True) for frame in stack}
    assert {"do_syscall_64_[k]", "ena_io_poll_[k]", "[jit]_[j]", "main"} <= frames
    assert "do_syscall_64" not in frames


def test_the_first_frame_may_be_the_process(recording: Recording) -> None:
    by_comm, by_process = lines(recording), lines(recording, first="process")
    assert sum(count for _, count in by_process) == sum(count for _, count in by_comm)
    assert {stack[1:] for stack, _ in by_process} == {stack[1:] for stack, _ in by_comm}
    named = {stack[0] for stack, _ in by_process} - {"not known"}
    assert named
    assert all(re.search(r" \[\d+\]$", name) for name in named)
