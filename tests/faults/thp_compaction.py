"""Memory is compacted by hand, over and over."""

from __future__ import annotations

from tests.faults.fault import Fault

SCRIPT = r"""
fd = os.open("/proc/sys/vm/compact_memory", os.O_WRONLY)
wait_for_the_word()
while True:
    os.write(fd, b"1")
"""

FAULT = Fault("thp-compaction", "compacter", SCRIPT, culprit="compacter")

if __name__ == "__main__":
    FAULT.demonstrate()
