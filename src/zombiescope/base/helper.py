"""What every process that the recorder starts does first: it ends with the recorder, and says where it crashed.

PR_SET_PDEATHSIG is sent when the *thread* that made the child ends. The recorder starts children from its main thread
only, whose end is the process's. A parent that ended before the child asked for the signal is noticed by its number,
which the child is given in its environment: only the standard library is imported here, before anything that may hang.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from contextlib import suppress

PARENT = "ZOMBIESCOPE_PARENT_PID"
BEAT_S = 2.0
"""A helper sends a line at least this often, also while it has nothing to do."""
_SET_PARENT_DEATH_SIGNAL = 1
_libc = ctypes.CDLL(None)


def begin() -> bool:
    """Whether the recorder started us. Ends this process at once where it has ended already."""
    with suppress(Exception):  # a standard error that is closed
        faulthandler.enable(all_threads=False)
    parent = os.environ.pop(PARENT, "")
    if parent.isdigit() and not ends_with(int(parent)):
        sys.exit(0)
    return bool(parent)


def ends_with(parent_pid: int, number: int = signal.SIGKILL) -> bool:
    """From here on the kernel sends that signal when our parent ends; False where it has ended already."""
    _libc.prctl(_SET_PARENT_DEATH_SIGNAL, number, 0, 0, 0)
    return os.getppid() == parent_pid
