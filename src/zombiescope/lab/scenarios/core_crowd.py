"""Workers that inherited a mask of one core, as data loaders do from a library that binds its threads."""

from __future__ import annotations

from zombiescope.lab.scenario import Needs, Scenario, Truth

WORKERS = 8
SCRIPT = r"""
wait_for_the_word()
os.sched_setaffinity(0, {1})
for _ in range(int(args[0])):
    if os.fork() == 0:
        dies_with_its_parent()
        name_is("worker")
        while True:
            pass
number = 0
while True:  # it has a little to do itself
    time.sleep(0.05)
    number += sum(range(20_000))
"""

SCENARIO = Scenario(
    id="core-crowd",
    title="All workers on one core",
    does=f"runs {WORKERS} busy loops that may all use the same single core",
    truth=Truth("scheduler-contention", "worker", "loader"),
    script=SCRIPT,
    comm="loader",
    frames="6.18: none, all user; the other core is idle",
    seconds=25.0,
    needs=Needs(cores=2),
    prepare=lambda _: [str(WORKERS)],
)
