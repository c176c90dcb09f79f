"""Memory is compacted by hand, over and over."""

from __future__ import annotations

from zombiescope.lab.scenario import Needs, Scenario, Truth

SCRIPT = r"""
fd = os.open("/proc/sys/vm/compact_memory", os.O_WRONLY)
wait_for_the_word()
while True:
    os.write(fd, b"1")
"""

SCENARIO = Scenario(
    id="thp-compaction",
    title="Memory is compacted repeatedly",
    does="repeatedly makes the kernel compact all memory (vm.compact_memory)",
    truth=Truth("thp-compaction", "compacter", "compacter"),
    script=SCRIPT,
    frames="6.18: isolate_migratepages_block, isolate_freepages_block < compact_zone < sysctl_compaction_handler",
    needs=Needs(files=("/proc/sys/vm/compact_memory",)),
)
