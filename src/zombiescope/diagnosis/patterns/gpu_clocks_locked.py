"""The clocks of a GPU are locked low: a setting, which its driver may count as heat."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Pattern, measured
from zombiescope.diagnosis.patterns.gpu_slow import LOCKED
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.kernel.pci_address import device
from zombiescope.model.plans.step import Step, change, command, note


def examine(case: Case) -> Evidence:
    found = [one for one in case.of_kind("gpu_slow") if one.facts["trouble"] == LOCKED]
    if not found:
        return Evidence(())
    measurements = tuple(
        measured(one.text, one.facts["clock_mhz"], "MHz", "gpu_seconds", True, at_us=one.from_us) for one in found[:3]
    )
    return Evidence(measurements, None, found[0].text, _fix(found[0]))


def _fix(symptom: Symptom) -> Fix:
    address = device(str(symptom.facts.get("gpu") or "")) or str(symptom.facts["gpu_number"])
    look = shell("nvidia-smi", "-q", "-d", "CLOCK,PERFORMANCE", "-i", address)
    return Fix(
        "reset the GPU's clocks, unless they are kept low on purpose",
        (
            command(look, "what the driver says of it"),
            _reset(symptom, address, look),
            note("who locked them is not recorded: look for nvidia-smi -lgc or -ac in start-up scripts and in DCGM"),
        ),
    )


def _reset(symptom: Symptom, address: str, look: str) -> Step:
    mhz = symptom.facts["clock_mhz"]
    applied = bool(symptom.facts["applied"])
    again = "nvidia-smi -ac with the clocks that the look before it showed"
    return change(
        shell("nvidia-smi", "-i", address, "-rac" if applied else "-rgc"),
        "its driver chooses the clocks again",
        touches=f"the clocks of the GPU {address}",
        risk="if they were lowered on purpose (to save power or for a measurement), they have to be set again",
        undo=again if applied else shell("nvidia-smi", "-i", address, "-lgc", f"{mhz},{mhz}"),
        verify=look,
        part="stop-gap",
    )


PATTERN = Pattern(
    id="gpu-clocks-locked",
    title="A GPU's clocks are locked",
    proof="literature",
    looks_like="A job is many times slower, the GPU is fully used and cool, draws little power, and its clock stays "
    "far below its maximum. The driver may count the time as thermal slowdown.",
    confirmed_by="Every reading shows the same clock, at half of the maximum or less, while the GPU is in use and far "
    "from its temperature limit, and the driver names no power limit as a reason.",
    refuted_by="Nothing: the driver reports it directly. A clock that is low because of heat, power or idleness does "
    "not count.",
    remedy="Run nvidia-smi -rgc (locked clocks) or -rac (application clocks), and remove the script or service that "
    "sets them.",
    stop_gap="reset them with nvidia-smi -rgc; a running job gets faster at once",
    examine=examine,
    symptoms=frozenset({"gpu_slow"}),
    hog="No process on this node.",
    culprit="Not known: the driver does not record who locked them.",
    known_from="nvidia-smi -lgc 345,345 on an H200, which was reported as heat at 37 °C; nvmlClocksEventReasons in "
    "nvml.h",
)
