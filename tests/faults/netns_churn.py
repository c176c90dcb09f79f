"""A sandbox that makes a network namespace for every job."""

from __future__ import annotations

from tests.faults.fault import Fault

SCRIPT = r"""
wait_for_the_word()
while True:
    check(libc.unshare(0x40000000))
"""

FAULT = Fault("netns-churn", "sandboxer", SCRIPT, culprit="sandboxer", seconds=5.0)

if __name__ == "__main__":
    FAULT.demonstrate()
