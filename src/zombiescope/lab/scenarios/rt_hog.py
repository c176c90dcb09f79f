"""A busy loop with SCHED_FIFO on one core. Real-time throttling stays on: the others keep 5% of it."""

from __future__ import annotations

from zombiescope.lab.scenario import Needs, Scenario, Truth

SCRIPT = r"""
wait_for_the_word()
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
while True:
    pass
"""

SCENARIO = Scenario(
    id="rt-hog",
    title="A real-time loop keeps a core for itself",
    does="runs a SCHED_FIFO busy loop on one core; everything else there gets 5% of it in the meantime",
    truth=Truth("rt-hog", "fifo-loop", "fifo-loop"),
    script=SCRIPT,
    frames="6.18: none, 97% user; ksoftirqd of that core waits 0.9 s a second",
    needs=Needs(cores=2, real_time=True),
    cpu=1,
)
