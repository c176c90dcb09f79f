"""Tasks wait inside the GPU's driver and do not come back."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Pattern, measured
from zombiescope.diagnosis.waits import lasted_s, longest, tasks_of, where, who
from zombiescope.model.plans.step import advice, command, note


def examine(case: Case) -> Evidence:
    symptom = longest(case, "gpu")
    if symptom is None:
        return Evidence(())
    waits = measured(f"{who(symptom)} in the GPU's driver", symptom.facts["count"], "tasks", "waiting", True,
                     at_us=symptom.from_us)  # fmt: skip
    summary = f"the GPU driver does not come back: {who(symptom)} for {lasted_s(symptom):.0f} s"
    return Evidence((waits, *where(tasks_of(case, symptom))), None, summary, _fix())


def _fix() -> Fix:
    return Fix(
        "find out which GPU it is; its jobs have to go before it can be reset",
        (
            command("dmesg -T | grep -E 'NVRM|Xid|amdgpu'", "what the driver reported, and of which GPU"),
            note("do not call nvidia-smi to look: it takes the same locks and waits with the others"),
            advice(
                "drain the node; a GPU whose processes are gone can be reset (nvidia-smi -r), one whose processes "
                "cannot be killed needs a reboot"
            ),
        ),
    )


PATTERN = Pattern(
    id="gpu-driver-hang",
    title="The GPU driver hangs",
    proof="literature",
    looks_like="Training, nvidia-smi, DCGM and the device plugin hang at once, in state D, below functions of the "
    "nvidia module; none of them can be killed.",
    confirmed_by="Tasks blocked in the GPU driver for 30 s or more.",
    refuted_by="No task waits there.",
    remedy="Drain the node, and reset the GPU or reboot. Do not query the driver until then.",
    stop_gap="cordon the node to keep new jobs away; tasks that already hang cannot be freed",
    examine=examine,
    symptoms=frozenset({"tasks_wait"}),
    hog="No process: a waiting task uses no CPU.",
    culprit="No process: a driver lock was never released.",
    known_from="open-gpu-kernel-modules issue 1333 (a lock that outlived its process, every call in D), gpud issue 117",
    repair="RESTART_VM",
)
