"""The hardware reports an error of its own: memory, a processor, a PCIe link, heat."""

from __future__ import annotations

from zombiescope.diagnosis.announced import announced, evidence
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix, advice, command
from zombiescope.diagnosis.pattern import Evidence, Pattern

KINDS = ("hardware_error", "cpu_throttled")


def examine(case: Case) -> Evidence:
    line = announced(case, *KINDS)
    if line is None:
        return Evidence(())
    return evidence(
        line,
        Fix(
            "look at the machine, not at what runs on it; drain it if the errors go on",
            (
                command("dmesg -T | grep -iE 'hardware error|mce|edac|aer|throttled'", "which part, and how often"),
                command("grep -s . /sys/devices/system/edac/mc/mc*/[cu]e_count", "memory errors, corrected and not"),
                advice("corrected errors that come again on the same part announce one that cannot be corrected"),
            ),
        ),
    )


PATTERN = Pattern(
    id="machine-fault",
    title="The hardware reported an error",
    proof="literature",
    looks_like="The kernel log has lines of machine checks, EDAC or PCIe errors, or a core is slowed down for heat.",
    confirmed_by="The kernel's own line about it.",
    refuted_by="No such line during the incident.",
    remedy="Look at the machine: the memory module, the slot, the cooling. Drain the node if the errors go on.",
    examine=examine,
    symptoms=frozenset({"event"}),
    hog="Nobody on this node.",
    culprit="Nobody on this node.",
    known_from="drivers/edac, arch/x86/kernel/cpu/mce, drivers/pci/pcie/aer.c",
)
