"""A signal to that very process, and to none that has its number since.

pidfd_open (v5.3, 32fcb426ec00) holds the process, its start time says whether it is the one that was meant, and the
signal goes through the descriptor: no other process can come in between. Older kernels are asked right before.
"""

from __future__ import annotations

import errno
import os
import signal

from zombiescope.kernel.process import read_stat


def send(pid: int, start_time_ticks: int, number: int) -> bool:
    """Whether it was sent; not to one that has ended. Raises OSError."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return _is_it(pid, start_time_ticks) and _kill(pid, number)
    try:
        if not _is_it(pid, start_time_ticks):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def _is_it(pid: int, start_time_ticks: int) -> bool:
    stat = read_stat(pid)
    return stat is not None and stat.start_time_ticks == start_time_ticks


def _kill(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
