"""`make soak-fuzz`: two million executions of every target, those of the native module under the sanitizers.

It goes on where the last run stopped, and says after each target what it has had. A defect ends the run of its target
and fails the whole; the input lies in build/fuzz/crashes/TARGET, and `TARGET --replay FILE` feeds it again.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from tests.fuzz import sanitizer
from tests.fuzz.campaign import PLACE, Book, results, table

PAGE = sanitizer.HERE / "docs" / "data" / "reliability.md"
BEGIN, END = "<!-- fuzzing: begin -->", "<!-- fuzzing: end -->"
SLICE_S = 120
"""A target's turn: after it the others get theirs, so that a run that is cut short has looked at everything."""


def main() -> int:
    options = _options()
    if options.replay:
        return _replay(options.names[0], options.replay)
    if options.anew:
        shutil.rmtree(PLACE / "corpus", ignore_errors=True)
        (PLACE / "progress.json").unlink(missing_ok=True)
    book = Book(PLACE, before="" if options.anew else PAGE.read_text())
    until = time.monotonic() + options.seconds
    failed: set[str] = set()
    while time.monotonic() < until and (owing := _owing(book, options, failed)):
        failed |= _round(book, owing, options, until)
    _say(table(book))
    if options.page:
        _write_page(table(book))
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak-fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", help="of tests/fuzz/targets; all when none is named")
    parser.add_argument("--executions", type=int, default=2_000_000, help="of each target, over all runs")
    parser.add_argument("--seconds", type=float, default=1e9, help="of this run")
    parser.add_argument("--turn", type=int, default=SLICE_S, help="seconds that a target runs before the next one")
    parser.add_argument("--native", action="store_true", help="those of the native module only")
    parser.add_argument("--python", action="store_true", help="the others only")
    parser.add_argument("--anew", action="store_true", help="forget corpora and counts")
    parser.add_argument("--page", action="store_true", help=f"write the table into {PAGE.name}")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="feed one input to the target that is named")
    return parser.parse_args()


def _owing(book: Book, options: argparse.Namespace, failed: set[str]) -> list[tuple[bool, list[str]]]:
    """Targets that have not had all executions, each group one worker's. Who has had least of its share comes first;
    what a user of the node can feed the recorder should have most."""
    from tests.fuzz.targets import TARGETS, weight

    def had(name: str) -> float:
        return book.executions(name) * TARGETS[name].cost / weight(name)

    groups = []
    for native, left_out in ((True, options.python), (False, options.native)):
        names = [
            name
            for name, target in TARGETS.items()
            if target.native is native and name not in failed and (not options.names or name in options.names)
            if book.executions(name) < options.executions // target.cost
        ]
        if names and not left_out:
            groups.append((native, sorted(names, key=had)))
    return sorted(groups, key=lambda group: had(group[1][0]))


def _round(book: Book, groups: list[tuple[bool, list[str]]], options: argparse.Namespace, until: float) -> set[str]:
    """A turn for each; those that failed."""
    from tests.fuzz.targets import TARGETS

    failed = set()
    for native, names in groups:
        module = sanitizer.build() if native else None
        left_s = until - time.monotonic()
        owed = {name: options.executions // TARGETS[name].cost - book.executions(name) for name in names}
        turns = results(
            {name: max(1, count) for name, count in owed.items()},
            PLACE,
            seconds=options.turn,
            module=module,
            most_s=left_s - options.turn,
        )
        for result in turns:
            known = book.note(result, sanitized=native)
            what = f"{known.name}: {known.executions:,} executions, {known.coverage:,} branches"
            if result["status"]:
                failed.add(known.name)
                what += f"; DEFECT: {result['fault']} {result['crashes']}"
            _say(what)
        if time.monotonic() > until:
            break
    return failed


def _replay(name: str, path: Path) -> int:
    from tests.fuzz.targets import TARGETS

    TARGETS[name].feed(path.read_bytes())
    _say("no defect (without the sanitizers)")
    return 0


def _write_page(measured: str) -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{measured}\n{END}{after}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
