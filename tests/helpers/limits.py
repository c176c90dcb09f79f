"""A test that goes wrong ends, and the run goes on.

pytest-timeout measures; what happens when the time is up is ours, because its own alarm rings once and is switched off
by the first failure: a test that then waits for its child, or a fixture that does, would wait for ever. This alarm ends
the children of the test first, fails what waits, and rings again while anything still hangs. Code that never returns to
the interpreter (a loop in the native module) hears no alarm: there the whole run ends, with the stacks of all threads.
"""

from __future__ import annotations

import faulthandler
import signal
from types import FrameType

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

from tests.helpers import children

LIMITS_S = {"long": 2400, "node": 1500, "containers": 1500, "cluster": 1500}
"""Limits of slower tests by their marker, the first that fits; all others have that of pyproject.toml. The first test
of a node may have to build its system (ten minutes) and to boot it (seven without KVM); the first with a kubelet may
have to build that."""
AGAIN_S = 20.0
"""The alarm's interval once it rang."""
DEAF_S = 120.0
"""How long after the alarm a run is ended that did not hear it."""


def set_by_marker(item: pytest.Item) -> None:
    if item.get_closest_marker("timeout"):
        return
    for marker, limit_s in LIMITS_S.items():
        if item.get_closest_marker(marker):
            item.add_marker(pytest.mark.timeout(limit_s))
            return


def arm(item: pytest.Item, limit_s: float) -> None:
    def ring(_signal: int, _frame: FrameType | None) -> None:
        __tracebackhide__ = True
        children.kill(children.of_whoever_runs())
        pytest.fail(f"Timeout (>{limit_s} s)")

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s, AGAIN_S)
    terminal = item.config.stash.get(fault_handler_stderr_fd_key, 2)
    faulthandler.dump_traceback_later(limit_s + DEAF_S, exit=True, file=terminal)


def disarm() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.cancel_dump_traceback_later()
