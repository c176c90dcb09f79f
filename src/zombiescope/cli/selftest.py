"""`zombiescope selftest`: whether this installation can diagnose."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, console, examples, print_document

if TYPE_CHECKING:
    from zombiescope.diagnosis.selftest.process import Finished

EXAMPLES = examples(
    "selftest",
    "selftest --json | jq .libraries",
    "selftest && zombiescope up",
)


def command(json_: Json = False) -> None:
    """Check that this installation can diagnose, with a small built-in recording.

    Runs the same process as the live diagnosis, needs no privileges and writes nothing. Exits 1 if the pass crashes,
    hangs or finds something else than the recording contains.
    """
    from zombiescope.diagnosis.selftest import process

    finished = process.run()
    if json_:
        print_document("selftest", _document(finished))
    if not finished.outcome.ok:
        raise Failure(finished.outcome.problem, finished.outcome.fix)
    if not json_:
        _print(finished)


def _document(finished: Finished) -> dict[str, Any]:
    from zombiescope.diagnosis.selftest import built_in

    outcome, expected = finished.outcome, None
    with suppress(built_in.DamagedError):
        expected = built_in.expected()
    return {
        "ok": outcome.ok,
        "why": outcome.why,
        "fix": outcome.fix,
        "found": outcome.found,
        "expected": expected,
        "seconds": outcome.seconds,
        "cpu_seconds": None if outcome.cpu_us is None else outcome.cpu_us / 1e6,
        "total_seconds": round(finished.total_seconds, 3),
        "libraries": outcome.libraries,
    }


def _print(finished: Finished) -> None:
    from zombiescope.diagnosis.selftest.outcome import named

    outcome, out = finished.outcome, console()
    found = outcome.found or {}
    out.print(f"ok: found {found.get('pattern')} by {found.get('culprit')} in the built-in recording")
    out.print(
        f"{outcome.seconds or 0:.2f} s and {(outcome.cpu_us or 0) / 1e6:.2f} CPU-seconds for the pass, "
        f"{finished.total_seconds:.1f} s with loading; {named(outcome.libraries)}"
    )
