"""A busy loop in a cgroup that may use a tenth of a core. It has to run through two looks at cpu.stat, 10 s apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.fault import Fault, cgroup

SCRIPT = r"""
for directory in args:  # in both hierarchies, as container runtimes do
    open(directory + "/cgroup.procs", "w").write("0")
wait_for_the_word()
while True:
    pass
"""
NAME = "zs-fault-quota"


@contextmanager
def place(directory: Path) -> Iterator[list[str]]:
    quota = cgroup("cpu", NAME, cpu__cfs_period_us=100_000, cpu__cfs_quota_us=10_000)
    with quota as made, cgroup("memory", NAME) as memory:
        yield [str(made), str(memory)]


FAULT = Fault("cfs-throttle", "throttled", SCRIPT, culprit=NAME, place=place, seconds=24.0, caged=False)

if __name__ == "__main__":
    FAULT.demonstrate()
