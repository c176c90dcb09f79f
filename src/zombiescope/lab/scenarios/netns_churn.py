"""A sandbox that makes a network namespace for every job."""

from __future__ import annotations

from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

SCRIPT = r"""
wait_for_the_word()
while True:
    check(libc.unshare(0x40000000))
"""

SCENARIO = Scenario(
    id="netns-churn",
    title="A network namespace for every job",
    does="makes network namespaces one after the other; the kernel removes them afterwards",
    truth=Truth("netns-churn", "sandboxer", "sandboxer"),
    script=SCRIPT,
    frames="6.18: setup_net 53% in total < copy_net_ns; cleanup_net 40% in a kworker",
    needs=Needs(1024 * MB),
)
