"""Somebody makes and removes a cgroup for every small job; nothing of them is left."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import Needs, Scenario, Truth

SCRIPT = r"""
parent = args[0]
number = 0
wait_for_the_word()
while True:
    job = f"{parent}/job-{number}"
    os.mkdir(job)
    os.rmdir(job)
    number += 1
"""


def prepare(sandbox: Sandbox) -> list[str]:
    return [str(sandbox.cgroup("memory", "jobs", children=True))]


SCENARIO = Scenario(
    id="cgroup-churn",
    title="A cgroup for every job",
    does="makes and removes memory cgroups one after the other, as fast as it can",
    truth=Truth("cgroup-churn", "sandboxes", "sandboxes"),
    script=SCRIPT,
    frames="6.18: cgroup_mkdir 52% in total, cgroup_addrm_files 50%, cgroup_rmdir 31%",
    needs=Needs(controllers=("memory",)),
    prepare=prepare,
)
