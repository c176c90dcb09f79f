"""`make golden` compares with the corpus; `make golden-accept` shows the difference and accepts it.

    python -m tests.golden [--accept] [NAME ...]

Ends with 1 if anything differs and is not accepted.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.golden.corpus import Documents, Subject, subjects

LINES = 40
"""Of the difference of one document; the rest is counted."""


def differences(before: Documents, now: Documents) -> Iterator[str]:
    for name in sorted({*before, *now}):
        if name not in now:
            yield f"  {name}: no longer asked"
        elif name not in before:
            yield f"  {name}: new"
        elif before[name] != now[name]:
            yield f"  {name}:"
            yield from _lines(before[name], now[name])


def _lines(before: object, now: object) -> Iterator[str]:
    was, is_now = (json.dumps(one, indent=1, sort_keys=True).splitlines() for one in (before, now))
    lines = difflib.unified_diff(was, is_now, n=2, lineterm="")
    found = [line for line in lines if not line.startswith(("---", "+++"))]
    yield from (f"    {line}" for line in found[:LINES])
    if len(found) > LINES:
        yield f"    ... {len(found) - LINES} more lines"


def compare(subject: Subject, *, accept: bool) -> bool:
    """Whether it answers as it did."""
    with tempfile.TemporaryDirectory(prefix="golden-") as place:
        now = subject.documents(Path(place))
    found = list(differences(subject.accepted(), now))
    _print(f"{subject.name}: {'as before' if not found else 'differs'} ({len(now)} documents)", *found)
    if found and accept:
        subject.accept(now)
    return not found


def _print(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true", help="keep what is answered now")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these recordings")
    chosen = parser.parse_args()
    os.environ["TZ"] = "UTC"
    time.tzset()
    wanted = [one for one in subjects() if not chosen.names or one.name in chosen.names]
    same = [compare(subject, accept=chosen.accept) for subject in wanted]
    return 0 if all(same) or chosen.accept else 1


if __name__ == "__main__":
    sys.exit(main())
