"""The window itself: a private recorder runs for it, in memory, while the surroundings are watched."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from zombiescope.audit.surroundings import Surroundings, Watch
from zombiescope.base.missing import Missing
from zombiescope.cli.check.progress import wait
from zombiescope.cli.failure import Failure, one_line
from zombiescope.cli.private_recorder import private_recorder

# Everything heavy is imported before the window begins: a check must not measure its own start.
from zombiescope.diagnosis import patterns, symptoms
from zombiescope.diagnosis.check.check import Audited, Check
from zombiescope.diagnosis.check.examine import examine
from zombiescope.store.reader import open_recording

INTERVAL_S = 0.5
"""Two ticks a second: a second of saturation is found wherever it begins."""


def look(for_s: float) -> Check:
    """Takes `for_s` seconds and a little more. Raises Failure when nothing could be seen at all."""
    symptoms.every(), patterns.every()
    with _terminated_in_order():
        watch = Watch(with_quotas=True)
        settings = {"for_s": for_s + INTERVAL_S, "interval_s": INTERVAL_S, "segment_s": for_s + 60.0}
        with private_recorder("check", **settings) as recorder:
            wait(recorder, for_s)
            surroundings = watch.end()
            with open_recording(recorder.home, temporary=True) as recording:
                check = examine(recording, surroundings, _audited(surroundings))
        if check is None:
            raise Failure("no core was measured: the recorder wrote no tick", "see 'zombiescope record --for 10s'")
        return check


def _audited(surroundings: Surroundings) -> Audited:
    try:
        from zombiescope import audit
        from zombiescope.audit.finding import MissingUntilBoot

        found = audit.examine(surroundings=surroundings)
        # What a boot would make is a question to an image; here it runs, or systemd does not.
        missing = tuple(one for one in found.missing if not isinstance(one, MissingUntilBoot))
        return Audited(found.findings, missing, found.running)
    except Exception as error:  # noqa: BLE001  what was seen in the window is worth showing all the same
        why = f"it broke off: {one_line(error)} ({type(error).__name__})"
        return Audited(missing=(Missing("audit", why, "'zombiescope audit' says more"),))


@contextmanager
def _terminated_in_order() -> Iterator[None]:
    """SIGTERM ends the recorder and removes its directory, as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
