"""The GPU's driver reports a fault of the GPU."""

from __future__ import annotations

import re
import shlex

from zombiescope.diagnosis import xid
from zombiescope.diagnosis.announced import announced, evidence
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix, FixStep, advice, command
from zombiescope.diagnosis.pattern import Evidence, Pattern
from zombiescope.diagnosis.symptom import Symptom

KIND = "gpu_xid"
_ADDRESS = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?")


def examine(case: Case) -> Evidence:
    line = announced(case, KIND)
    if line is None:
        return Evidence(())
    known = xid.known(line.facts.get("xid"))
    do = known.do if known else "look the code up in NVIDIA's catalogue of Xids; drain the node if jobs fail on it"
    return evidence(
        line, Fix(do, tuple(_steps(line))), _program(line) if known and known.severity == "warning" else None
    )


def _steps(line: Symptom) -> list[FixStep]:
    found = _ADDRESS.match(str(line.facts.get("gpu") or ""))
    steps = [command("dmesg -T | grep -E 'NVRM|nvidia'", "what the driver reported before and after")]
    if found is not None:
        steps.append(command(f"nvidia-smi -q -i {shlex.quote(found[0])}", "whether the driver still reaches it"))
    return [*steps, advice("give the provider or the vendor the bus address, the code and the time")]


def _program(line: Symptom) -> Actor | None:
    """Whose channel it was, where the code is one that applications cause."""
    comm, pid = line.facts.get("comm"), line.facts.get("pid")
    return Actor(comm=str(comm), pid=pid if isinstance(pid, int) else None) if comm else None


PATTERN = Pattern(
    id="gpu-fault",
    title="A GPU reported a fault",
    proof="literature",
    looks_like="Jobs fail with CUDA errors or hang in a collective; the kernel log has a line of the driver with an "
    "Xid code.",
    confirmed_by="The driver's own line, which names the GPU by its bus address, the code, and the process if known.",
    refuted_by="No such line during the incident.",
    remedy="By code: restart the application, reset the GPU, or drain the node and power-cycle it.",
    examine=examine,
    symptoms=frozenset({"event"}),
    hog="Nobody on this node.",
    culprit="The process that the driver names, where the code is one that applications cause; else nobody.",
    known_from="NVIDIA open-gpu-kernel-modules 595, and NVIDIA's catalogue of Xids",
)
