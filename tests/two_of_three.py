"""pytest, and two more tries for what failed: `python -m tests.two_of_three ARGUMENTS OF PYTEST`.

Most tests here watch a real kernel, a real machine or a real browser while time passes, on a machine that others share.
One of them in ten thousand loses a race that has nothing to do with the change (docs/design/0067). A test that failed
is tried twice more, without the others and in a fresh process; it counts as passed if it passes both times, and is
named at the end with what it said the first time. Failures in more than MAX_FILES files are no accident (those of one
file often read the same recording), and a run that ended for any other reason than a failed test is not tried again."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

MAX_FILES = 3
TRIES = 2
FAILED = 1
"""What pytest exits with when tests failed, and nothing worse happened."""
ALONE = ("-p", "no:xdist")


def main(arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="zombiescope-tests-") as cache:
        status = _pytest([*arguments, "-o", f"cache_dir={cache}"])
        if status != FAILED:
            return status
        failed = _failed(Path(cache))
        files = {test.partition("::")[0] for test in failed}
        if not failed or len(files) > MAX_FILES:
            _say(f"tests of {len(files)} files failed: more than {MAX_FILES} are not tried again", failed)
            return status
        _say(f"tried {TRIES} times more, by themselves:", failed)
        for _ in range(TRIES):
            status = _pytest([*ALONE, *failed])
            if status:
                _say("failed again:", failed)
                return status
    _say(f"passed {TRIES} times of {TRIES + 1}; what they said at first stands above, and deserves a look:", failed)
    return 0


def _failed(cache: Path) -> list[str]:
    try:
        found = json.loads((cache / "v" / "cache" / "lastfailed").read_text())
    except FileNotFoundError:
        return []
    return sorted(found)


def _pytest(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments]).returncode


def _say(what: str, tests: Sequence[str]) -> None:
    sys.stderr.write("".join(["\n", what, "\n", *(f"  {test}\n" for test in tests)]))
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
