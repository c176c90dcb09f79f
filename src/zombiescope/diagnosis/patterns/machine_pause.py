"""The whole machine stood still: the host paused it, the firmware took all cores, or the kernel stopped them.

From inside, the three look alike: no core takes an interrupt. What tells them apart is beside it: whether there is a
hypervisor at all, whether it counted stolen time, and whether stop_machine was sampled. Where nothing does, the cause
is a guess and says so.
"""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.model.plans.step import Step, advice, command, note
from zombiescope.store.thresholds import LITTLE_STOLEN

STOPPERS = ("multi_cpu_stop", "stop_machine_cpuslocked", "stop_machine")
_KERNEL = "the kernel stopped all cores itself (stop_machine), for example to patch its code"
_FIRMWARE = "the firmware took all cores (a system management interrupt)"


def examine(case: Case) -> Evidence:
    virtual, name = _virtual(case)
    stolen, stopped = _stolen(case), _stopped(case)
    measurements = (_pause(case), _below(virtual, name), stolen, stopped)
    return Evidence(measurements, None, _summary(virtual, name, stolen, stopped), _fix(virtual, stopped))


def _pause(case: Case) -> Measurement:
    paused = case.of_kind("machine_stall")
    if not paused:
        return Measurement("the machine did not pause", 0, "us", "cores", "refutes")
    longest = max(paused, key=lambda symptom: int(symptom.facts["gap_us"]))
    return measured(longest.text, int(longest.facts["gap_us"]), "us", "cores", None, at_us=longest.from_us)


def _virtual(case: Case) -> tuple[bool | None, str | None]:
    """As node.json says; recordings of earlier versions do not."""
    known = case.facts.node.get("hypervisor")
    if not isinstance(known, dict) or not isinstance(known.get("virtual"), bool):
        return None, None
    name = known.get("name")
    return known["virtual"], name if isinstance(name, str) else None


def _below(virtual: bool | None, name: str | None) -> Measurement:
    if virtual is None:
        return Measurement("whether the machine is virtual was not recorded", None, None, "node.json", "nothing")
    if not virtual:
        return Measurement(
            "the machine is bare metal: no hypervisor can pause it", "none", None, "node.json", "nothing"
        )
    fact = f"the machine is virtual ({name or 'its hypervisor does not give its name'}): its host can pause it"
    return Measurement(fact, name or "none", None, "node.json", "nothing")


def _stolen(case: Case) -> Measurement:
    ratio = case.core_mean("steal")
    if ratio is None:
        return Measurement("stolen time was not measured", None, "ratio", "cores", "nothing")
    fact = f"{ratio * 100:.1f}% of the time was counted as stolen"
    return measured(fact, round(ratio, 4), "ratio", "cores", True if ratio >= LITTLE_STOLEN else None)


def _stopped(case: Case) -> Measurement:
    cores = case.cores_in(*STOPPERS)
    if cores is None:
        return Measurement("whether the kernel stopped its cores was not sampled", None, "cores", "samples", "nothing")
    fact = "stop_machine was sampled around it" if cores else "stop_machine was not sampled around it"
    return measured(fact, round(cores, 4), "cores", "samples", True if cores else None)


def _summary(virtual: bool | None, name: str | None, stolen: Measurement, stopped: Measurement) -> str:
    host = f"the host paused this virtual machine{f' ({name})' if name else ''}"
    if stopped.says == "confirms":
        return f"the machine paused: {_KERNEL}"
    if virtual is False:
        return f"the machine paused: probably {_FIRMWARE}; there is no hypervisor. Or {_KERNEL}"
    if stolen.says == "confirms":
        return f"the machine paused: {host}, and counted part of it as stolen"
    if virtual:
        return f"the machine paused: probably {host}; {_FIRMWARE} or stop_machine look the same from inside"
    return f"the machine paused: either its host paused it, if it is virtual, or {_FIRMWARE}, or {_KERNEL}"


def _fix(virtual: bool | None, stopped: Measurement) -> Fix:
    steps: list[Step] = [command("zombiescope events --last 1h", "module loads, tracing, CPUs that went or came")]
    if virtual is not False:
        steps.append(
            advice("ask the provider for pauses and migrations of this machine, with the times of this incident")
        )
    if virtual is not True:
        steps.append(note("count SMIs over a minute: turbostat --show SMI, or MSR 0x34 before and after"))
    if stopped.says == "confirms":
        steps.append(advice("look for programs that switch tracing, live patches, kprobes or CPUs on and off"))
    return Fix("find out which of the three it was", tuple(steps))


PATTERN = Pattern(
    id="machine-pause",
    title="The whole machine paused",
    proof="literature",
    looks_like="No core takes an interrupt for half a second or more; then all continue.",
    confirmed_by="Samples around it show stop_machine, or 5% of the time is counted as stolen. Without either, the "
    "confidence is at most 0.5 and the report lists the possible causes.",
    refuted_by="The recorder lost samples or was late itself: then only the recording has a gap.",
    remedy="Find out which of the three it was: the host (ask the provider), the firmware (count SMIs), or the kernel.",
    no_stop_gap="nothing on the node keeps the host, the firmware or the kernel from stopping it",
    examine=examine,
    hog="No process that is visible from inside.",
    culprit="The host, the firmware, or the program that makes the kernel stop its cores.",
    symptoms=frozenset({"machine_stall"}),
    may_be=True,
    known_from="kernel/stop_machine.c; Intel SDM, chapter 31 (SMM)",
    repair="CONTACT_SUPPORT",
)
