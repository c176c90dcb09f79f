"""A GPU is connected to its node, or to the other GPUs, with less than it has."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.model.plans.step import Step, advice, command


def examine(case: Case) -> Evidence:
    found = case.of_kind("gpu_link")
    if not found:
        return Evidence(())
    measured = tuple(
        Measurement(one.text, one.facts["value"], one.facts["unit"], "counters", "confirms", one.from_us)
        for one in found
    )
    kinds = {str(one.facts["what"]) for one in found}
    return Evidence(
        measured, None, found[0].text, Fix("take the node out of work and repair the link", tuple(_steps(kinds)))
    )


def _steps(kinds: set[str]) -> Iterator[Step]:
    if "fabric" in kinds:
        yield command("systemctl status nvidia-fabricmanager", "whether it runs, and fits the version of the driver")
        yield command("nvidia-smi -q | grep -A4 -i fabric", "what the driver tells of each GPU")
        yield advice("start nvidia-fabricmanager in the version of the driver, then start the jobs again", "stop-gap")
    if "pcie" in kinds:
        yield command("nvidia-smi --query-gpu=index,pcie.link.width.current,pcie.link.width.max --format=csv")
        yield command("lspci -vv | grep -E 'LnkCap:|LnkSta:'", "which slot has fewer lanes than it may have")
        yield advice("reboot the node; if it comes again, reseat or replace the GPU or its riser")


PATTERN = Pattern(
    id="gpu-link",
    title="A GPU is not fully connected",
    proof="literature",
    looks_like="Jobs on this node are slower than elsewhere in copies to and from GPUs, or NCCL fails to start with a "
    "system error, while every GPU answers.",
    confirmed_by="The driver tells fewer PCIe lanes than the GPU has, or a fabric state other than completed.",
    refuted_by="Nothing: the pattern is only considered when one of these is present.",
    remedy="Run Fabric Manager in the version of the driver; reseat or replace what lost its lanes.",
    stop_gap="keep jobs of several GPUs off this node",
    examine=examine,
    symptoms=frozenset({"gpu_link"}),
    repair="COMPONENT_RESET",
    hog="No process on this node.",
    culprit="No process on this node.",
    known_from="NVSentinel 883 and 891; nvml.h, nvmlGpuFabricInfo_t",
)
