"""What a process runs, in a word: `train.py` where `ps` says python3, and its rank in a distributed job.

Read from the command line that the recorder kept (tasks.cmdline), which anybody can choose: a name, never a proof. An
interpreter is named by its script or module; any other program by its own name, which is the task's. The rank is that
of the table `ranks`, else of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from zombiescope.store import columns
from zombiescope.store.reader import Recording

_INTERPRETER = re.compile(r"(?:python|pypy|perl|ruby|node|nodejs|bash|sh|dash|zsh|Rscript|java)[\d.]*[a-z]?")
_TAKES_A_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs", "-cp", "-classpath"})
_RANK = re.compile(r"(?:^|\s)--?(?:global[-_]|node[-_])?(?:local[-_])?rank[=\s]+(\d{1,6})(?=\s|$)")
LONGEST = 60


@dataclass(frozen=True, slots=True)
class Program:
    name: str | None
    """Of the script or module; None where the task's own name says it."""
    rank: int | None


def program(cmdline: str | None) -> str | None:
    """The script or module that an interpreter runs; None for any other program."""
    words = (cmdline or "").split()
    if not words or not _INTERPRETER.fullmatch(words[0].rpartition("/")[2]):
        return None
    rest = iter(words[1:])
    for word in rest:
        if word in ("-m", "-jar"):
            return _short(next(rest, ""))
        if word in ("-c", "-e"):
            return None
        if word in _TAKES_A_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            return _short(word)
    return None


def rank(cmdline: str | None) -> int | None:
    """Of --rank or --local_rank, the first that is given."""
    found = _RANK.search(cmdline or "")
    return int(found[1]) if found else None


def programs(recording: Recording, start_us: int, end_us: int) -> dict[int, Program]:
    """By process id, of the processes in the window of which a command line is known."""
    rows = columns.records(recording.table("tasks", start_us, end_us, ("pid", "cmdline")))
    found = of_tasks((row["pid"], row["cmdline"]) for row in rows)
    for row in columns.records(recording.table("ranks", start_us, end_us, ("pid", "rank"))):
        if row["pid"] is not None and row["rank"] is not None:
            known = found.get(row["pid"])
            found[row["pid"]] = Program(known.name if known else None, row["rank"])
    return found


def of_tasks(rows: Iterable[tuple[int | None, str | None]]) -> dict[int, Program]:
    return {pid: Program(program(text), rank(text)) for pid, text in rows if pid is not None and text}


def _short(word: str) -> str | None:
    return word.rpartition("/")[2][:LONGEST] or None
