"""Heat slows cores down: whatever runs there takes longer, and no task is to blame."""

from __future__ import annotations

from zombiescope.diagnosis.announced import announced, evidence
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.model.plans.step import advice, command, note

FIX = Fix(
    "look at the cooling of this machine: fans, filters, inlet temperature, the rack",
    (
        command("grep -s . /sys/devices/system/cpu/cpu*/thermal_throttle/package_throttle_count", "how often, so far"),
        command("ipmitool sdr type Temperature; ipmitool sdr type Fan", "what the machine's controller measures"),
        note("one node of a rack that is slow is its fan or filter; all of them are the room"),
        advice("drain the node if it goes on: in a synchronous job all others wait for it", "stop-gap"),
    ),
)


def examine(case: Case) -> Evidence:
    counted = case.of_kind("cpu_throttled")
    if counted:
        first = counted[0]
        found = tuple(
            Measurement(one.text, one.facts["added"], one.facts["unit"], "counters", "confirms", one.from_us,
                        counter=one.facts["counter"])
            for one in counted
        )  # fmt: skip
        return Evidence(found, None, first.text, FIX)
    line = announced(case, "cpu_throttled")
    return Evidence(()) if line is None else evidence(line, FIX)


PATTERN = Pattern(
    id="cpu-throttled",
    title="Cores are slowed down for heat",
    proof="literature",
    looks_like="Everything on a node takes longer than on its neighbours, and no counter of work or waiting says why.",
    confirmed_by="The kernel's counters of thermal throttling, for a tenth of the time or longer; or its line that "
    "the clock is throttled, where it is printed only if it lasts (from 5.6 on).",
    refuted_by="Nothing: it is only considered where the kernel counts or says it. AMD and Arm say nothing.",
    remedy="Cooling: fans, filters, inlet temperature. Drain the node while it lasts.",
    stop_gap="put less load on the machine while it is hot, or drain it",
    examine=examine,
    symptoms=frozenset({"event", "cpu_throttled"}),
    hog="Nobody on this node.",
    culprit="Nobody on this node.",
    known_from="drivers/thermal/intel/therm_throt.c",
)
