"""The hardware reports an error of its own: memory, a processor, a PCIe link, an optic; with the name of the part."""

from __future__ import annotations

from zombiescope.diagnosis.announced import announced, evidence, fix_of
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.diagnosis.plan import is_plain
from zombiescope.kernel.log_kinds import MACHINE_FIX


def examine(case: Case) -> Evidence:
    line = announced(case, "machine-fault")
    if line is not None:
        return evidence(line, _fix(case))
    again = next(iter(case.of_kind("corrected_errors")), None)
    if again is None:
        return Evidence(())
    count = int(again.facts["count"])
    found = Measurement(again.text, count, "errors", str(again.facts["source"]), "confirms", again.from_us)
    return Evidence((found,), None, f"{again.facts['named']} corrects errors again and again", _fix(case))


def _fix(case: Case) -> Fix:
    """With the PCIe device, whichever symptom names it: its link narrower than it could be is a fault."""
    named = (str(one.facts["device"]) for one in case.group.symptoms if one.facts.get("device"))
    return fix_of(MACHINE_FIX, {"device": next((name for name in named if is_plain(name)), "")})


PATTERN = Pattern(
    id="machine-fault",
    title="The hardware reported an error",
    proof="literature",
    looks_like="The kernel log has machine checks, EDAC or PCIe errors or broken memory pages, which name the memory "
    "module or the PCIe device.",
    confirmed_by="The kernel logged an uncorrected error, or ten corrected errors of one component within ten minutes. "
    "An occasional corrected error is what ECC is for.",
    refuted_by="The kernel logged no such line during the incident.",
    remedy="Check the hardware: the memory module, the slot. Drain the node if errors continue.",
    stop_gap="cordon the node, and let its jobs write a checkpoint while it still works",
    examine=examine,
    symptoms=frozenset({"event", "corrected_errors"}),
    hog="No process on this node.",
    culprit="No process on this node.",
    known_from="drivers/edac, arch/x86/kernel/cpu/mce, drivers/pci/pcie/aer.c",
    repair="REPLACE_VM",
)
