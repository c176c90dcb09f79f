"""A busy loop with SCHED_FIFO on one core. Real-time throttling stays on: the others keep 5 % of it."""

from __future__ import annotations

from tests.faults.fault import Fault

SCRIPT = r"""
wait_for_the_word()
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
while True:
    pass
"""

FAULT = Fault("rt-hog", "fifo-loop", SCRIPT, culprit="fifo-loop", cpu=1, caged=False)

if __name__ == "__main__":
    FAULT.demonstrate()
