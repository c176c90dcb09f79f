"""The hardware reports an error of its own: memory, a processor, a PCIe link, an optic; with the name of the part."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.announced import announced, evidence
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.diagnosis.plan import is_plain, shell
from zombiescope.model.plans.step import Step, command, note

KINDS = ("hardware_error", "optic_error")


def examine(case: Case) -> Evidence:
    line = announced(case, *KINDS)
    if line is not None:
        return evidence(line, _fix(case))
    again = next(iter(case.of_kind("corrected_errors")), None)
    if again is None:
        return Evidence(())
    count = int(again.facts["count"])
    found = Measurement(again.text, count, "errors", str(again.facts["source"]), "confirms", again.from_us)
    return Evidence((found,), None, f"{again.facts['named']} corrects errors again and again", _fix(case))


def _fix(case: Case) -> Fix:
    return Fix(
        "look at the machine, not at what runs on it; drain it if the errors go on",
        (
            command("dmesg -T | grep -iE 'hardware error|mce|edac|aer'", "which part, and how often"),
            command("grep -s . /sys/devices/system/edac/mc/mc*/[cu]e_count", "memory errors, corrected and not"),
            *_device(case),
            note("corrected errors that come again on the same part announce one that cannot be corrected"),
        ),
    )


def _device(case: Case) -> Iterator[Step]:
    """What is known of the PCIe device that is named: its link narrower than it could be is a fault."""
    named = (str(one.facts["device"]) for one in case.group.symptoms if one.facts.get("device"))
    device = next((name for name in named if is_plain(name)), None)
    if device is not None:
        yield command(shell("lspci", "-vvs", device), "which device, its slot, LnkSta against LnkCap, its error bits")


PATTERN = Pattern(
    id="machine-fault",
    title="The hardware reported an error",
    proof="literature",
    looks_like="The kernel log has lines of machine checks, EDAC, PCIe errors or broken memory pages, which name the "
    "memory module or the PCIe device.",
    confirmed_by="The kernel's own line about an error that was not corrected; or ten corrected ones of one part "
    "within ten minutes. A corrected one now and then is what ECC is for.",
    refuted_by="No such line during the incident.",
    remedy="Look at the machine: the memory module, the slot. Drain the node if the errors go on.",
    stop_gap="cordon the node, and let its jobs write a checkpoint while it still works",
    examine=examine,
    symptoms=frozenset({"event", "corrected_errors"}),
    hog="Nobody on this node.",
    culprit="Nobody on this node.",
    known_from="drivers/edac, arch/x86/kernel/cpu/mce, drivers/pci/pcie/aer.c",
)
