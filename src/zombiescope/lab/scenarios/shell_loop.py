"""A script that starts a program for every line it reads: no core is saturated, half the machine is busy with it."""

from __future__ import annotations

from zombiescope.lab.scenario import Needs, Scenario, Truth

SCRIPT = r"""
wait_for_the_word()
os.execvp("bash", ["bash", "-c", "while :; do /bin/true; done"])
"""

SCENARIO = Scenario(
    id="shell-loop",
    title="A shell that starts a program for every line",
    does="starts /bin/true from a shell, over a thousand times a second",
    truth=Truth("fork-storm", "true", "bash"),
    script=SCRIPT,
    comm="script",
    frames="6.18: exit_mmap, unmap_page_range, load_elf_binary, copy_process; 0.75 of a CPU in the kernel",
    seconds=20.0,
    needs=Needs(programs=(("bash", "bash"),)),
)
