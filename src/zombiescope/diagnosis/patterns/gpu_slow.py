"""A GPU is slow, or lost, by itself: heat, a power brake, bad memory. Nobody on the node starves it."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Pattern, measured
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.kernel import xid
from zombiescope.kernel.pci_address import device
from zombiescope.model.plans.step import Step, command, note

_TO_DO = {
    "heat": "check the node's airflow and fans and its neighbours in the rack; move the job until then",
    "power": "look at the power supplies of the node and of the rack: one may be gone, and the others ask for less",
    "slowdown": "look at heat and power supplies of the node",
    "memory": "let no new job on this GPU; reset it when the present one is done (nvidia-smi --gpu-reset), and replace "
    "it if it comes again",
    "lost": "drain the node and power-cycle it; look at power, heat and the PCIe slot",
    "reset_required": "drain the node and reset the GPU (nvidia-smi --gpu-reset)",
}


LOCKED = "locked"
"""That trouble is a setting, and has a pattern of its own (gpu_clocks_locked.py)."""


def examine(case: Case) -> Evidence:
    found = [one for one in case.of_kind("gpu_slow") if one.facts["trouble"] != LOCKED]
    if not found:
        return Evidence(())
    worst = max(found, key=lambda one: (one.severity == "critical", one.seconds))
    measurements = tuple(
        measured(one.text, one.facts.get("slowed_s") or 1, "s" if one.facts.get("slowed_s") else None,
                 "gpu_seconds" if one.facts.get("slowed_s") else "gpus", True, at_us=one.from_us)
        for one in found[:3]
    )  # fmt: skip
    return Evidence(measurements, None, worst.text, Fix(_to_do(worst), tuple(_steps(worst))))


def _to_do(worst: Symptom) -> str:
    action = worst.facts.get("action")
    return xid.TO_DO[action] if action in xid.TO_DO else _TO_DO[str(worst.facts["trouble"])]


def _steps(worst: Symptom) -> list[Step]:
    address = device(str(worst.facts.get("gpu") or "")) or str(worst.facts["gpu_number"])
    asked = "PERFORMANCE,TEMPERATURE,POWER,ECC,ROW_REMAPPER"
    return [
        command(shell("nvidia-smi", "-q", "-d", asked, "-i", address), "what the driver says about it now"),
        note("compare it with the other GPUs of the node: one that is slow makes the whole job wait"),
    ]


PATTERN = Pattern(
    id="gpu-slow",
    title="A GPU is slow by itself",
    proof="literature",
    looks_like="A job is slower although no resource of the node is exhausted: one GPU lowers its clocks, has memory "
    "errors, or does not answer its driver.",
    confirmed_by="The driver counts time at lowered clocks (heat, power brake) or uncorrected memory errors, or "
    "reports the GPU as faulty.",
    refuted_by="Nothing: the driver reports it directly. A power cap is normal at full load and does not count.",
    remedy="Depends on the cause: fix airflow and fans or the power supply; reset or replace the GPU.",
    stop_gap="take the GPU out of the job, or cordon the node: in a synchronous job all others wait for it",
    examine=examine,
    symptoms=frozenset({"gpu_slow"}),
    hog="No process on this node.",
    culprit="No process on this node.",
    known_from="NVML's fields 269 to 271 and its error counters; DCGM's health checks",
)
