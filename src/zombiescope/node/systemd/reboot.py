"""A reboot in a minute, through logind: `shutdown -r +1`; until then `shutdown -c` takes it back.

The minute is for whoever asked: the answer can be written down and shown, users are warned, and it can be called off.
/run/systemd/shutdown/scheduled (USEC=, MODE=reboot) says that one is on its way; no file: none is. Without logind
`shutdown` refuses, and that is a RebootError.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from zombiescope.base.errors import UserError
from zombiescope.base.text import printable

SCHEDULED = Path("/run/systemd/shutdown/scheduled")
SCHEDULE = ("shutdown", "-r", "+1")
CANCEL = ("shutdown", "-c")
_CALL_S = 30.0
_LONGEST = 200


class RebootError(UserError):
    """It could not be scheduled, or not be called off."""


def is_scheduled() -> bool:
    try:
        return "MODE=reboot" in SCHEDULED.read_text(errors="replace").splitlines()
    except OSError:
        return False


def schedule(why: str) -> None:
    """`why` is shown to whoever is logged in. Raises RebootError."""
    _run(*SCHEDULE, printable(why)[:_LONGEST])


def cancel() -> None:
    """Raises RebootError."""
    _run(*CANCEL)


def _run(*words: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603  our own words
            words, capture_output=True, text=True, errors="replace", timeout=_CALL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RebootError(f"{words[0]} {words[1]}: {error}", "reboot the node by hand") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
        raise RebootError(f"{words[0]} {words[1]}: {said[0]}", "is systemd-logind there? Reboot the node by hand")
