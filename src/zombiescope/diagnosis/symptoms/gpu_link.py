"""A GPU that runs on fewer PCIe lanes than it has, or that its Fabric Manager has not made part of the NVLink fabric.

Levels that the driver tells (NVML), once a minute. The generation of a PCIe link falls by itself while a GPU is idle,
so it is recorded and not judged; the width does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.kernel.nvml_codes import FABRIC_COMPLETED, FABRIC_STATES


def find(facts: Facts) -> Iterator[Symptom]:
    now, most, state, status = (
        facts.gauges("gpu_link", name, facts.end_us)
        for name in ("pcie_width", "pcie_width_max", "fabric_state", "fabric_status")
    )
    for gpu, width in sorted(now.items()):
        if 0 < width < most.get(gpu, 0):
            text = f"GPU {gpu} runs on {width} of its {most[gpu]} PCIe lanes"
            yield _symptom(facts, gpu, "pcie", text, width, "lanes")
    for gpu, found in sorted(state.items()):
        if found in FABRIC_STATES and found != FABRIC_COMPLETED:
            text = f"GPU {gpu} is not part of the NVLink fabric: Fabric Manager {FABRIC_STATES[found]}"
            yield _symptom(facts, gpu, "fabric", text, found, "state")
        elif found == FABRIC_COMPLETED and status.get(gpu, 0):
            text = f"GPU {gpu} could not join the NVLink fabric: NVML error {status[gpu]}"
            yield _symptom(facts, gpu, "fabric", text, status[gpu], "error")


def _symptom(facts: Facts, gpu: str, what: str, text: str, value: int, unit: str) -> Symptom:
    known = {"gpu_index": int(gpu) if gpu.isdecimal() else None, "what": what, "value": value, "unit": unit}
    return Symptom(
        DETECTOR, facts.start_us, facts.end_us, text, "warning", group=f"{what} {gpu}", facts=known, subject="gpu",
        cores=frozenset(),
    )  # fmt: skip


DETECTOR = Detector(
    kind="gpu_link",
    title="a GPU is not fully connected",
    reported_when="a GPU runs on fewer PCIe lanes than it has, or is not part of its NVLink fabric",
    find=find,
    source="counters",
    role="victim",
    about="gpu",
    begins="window",
    has_hog=False,
)
