"""The GPU's driver reports a fault of the GPU, of a link between GPUs, or of a switch of those links."""

from __future__ import annotations

import shlex

from zombiescope.diagnosis.announced import announced, evidence
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.gpu_faults import UNKNOWN
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.kernel import xid
from zombiescope.kernel.pci_address import device
from zombiescope.model.plans.step import Step, advice, command

_SWITCH = {
    1: "drain the node and restart nvidia-fabricmanager, which resets GPUs and switches; if it comes again, replace "
    "the switch",
    0: "nothing now; watch whether it comes again on this link",
}
_INIT = "drain the node and reboot it; if the GPU does not come back, power-cycle it, then replace the GPU"


def examine(case: Case) -> Evidence:
    line = announced(case, "gpu-fault")
    if line is None:
        return Evidence(())
    found = evidence(line, Fix(_to_do(line), tuple(_steps(line))), _program(line))
    return Evidence((*found.measurements, *_verdict(line)), found.culprit, found.summary, found.fix)


def _to_do(line: Symptom) -> str:
    kind = line.facts["event"]
    if kind == "nvswitch_sxid":
        return _SWITCH[0 if line.facts.get("fatal") == 0 else 1]
    return _INIT if kind == "gpu_init" else str(line.facts.get("do") or UNKNOWN)


def _verdict(line: Symptom) -> list[Measurement]:
    """Who is to blame, and by what: two answers."""
    blame, because = line.facts.get("blame"), line.facts.get("because")
    kind, said = str(line.facts["event"]), []
    if blame in xid.BLAMED:
        said.append(Measurement(f"to blame is {xid.BLAMED[blame]}", kind, None, "events", "nothing", step="blame"))
    if because:
        said.append(Measurement(f"what to do: {because}", kind, None, "events", "nothing", step="verdict"))
    return said


def _steps(line: Symptom) -> list[Step]:
    address = device(str(line.facts.get("gpu") or ""))
    steps = [command("dmesg -T | grep -E 'NVRM|nvidia'", "what the driver reported before and after")]
    if address is not None:
        steps.append(command(f"nvidia-smi -q -i {shlex.quote(address)}", "whether the driver still reaches it"))
    if line.facts["event"] == "nvswitch_sxid":
        steps.append(command("nvidia-smi nvlink -s", "which links are up"))
    return [*steps, advice("give the provider or the vendor the bus address, the code and the time")]


def _program(line: Symptom) -> Actor | None:
    """Whose channel it was, where the code is one that applications cause, or one that only an application felt."""
    known = xid.known(line.facts.get("xid"))
    if known is None or known.severity != "warning" or line.facts.get("action") == "test":
        return None
    comm, pid = line.facts.get("comm"), line.facts.get("pid")
    return Actor(comm=str(comm), pid=pid if isinstance(pid, int) else None) if comm else None


PATTERN = Pattern(
    id="gpu-fault",
    title="A GPU reported a fault",
    proof="literature",
    looks_like="Jobs fail with CUDA errors or hang in a collective; the driver logged an Xid code in the kernel log.",
    confirmed_by="The driver logged the GPU's bus address, the code and, if known, the process. The fix comes from the "
    "action that the driver requests (Xid 154), then from the severity in its text, then from NVIDIA's "
    "catalogue, then from whether several jobs failed on the same GPU. Codes 43 and 45 are consequences "
    "of other errors.",
    refuted_by="The driver logged no such line during the incident.",
    remedy="Depends on the code: restart the application, reset the GPU, or drain the node and power-cycle it.",
    stop_gap="keep new jobs off that GPU, or cordon the node, until it is reset",
    examine=examine,
    symptoms=frozenset({"event"}),
    hog="No process on this node.",
    culprit="The process that the driver names, if applications can cause the code; otherwise no process.",
    known_from="NVIDIA open-gpu-kernel-modules 595, and NVIDIA's catalogue of Xids",
    repair="COMPONENT_RESET",
)
