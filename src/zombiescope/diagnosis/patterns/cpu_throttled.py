"""Heat slows cores down: whatever runs there takes longer, and no task is to blame."""

from __future__ import annotations

from zombiescope.diagnosis.announced import fix_of, restated
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.kernel.log_kinds import HEAT_FIX


def examine(case: Case) -> Evidence:
    counted = case.of_kind("cpu_throttled")
    if counted:
        first = counted[0]
        found = tuple(
            Measurement(one.text, one.facts["added"], one.facts["unit"], "counters", "confirms", one.from_us,
                        counter=one.facts["counter"])
            for one in counted
        )  # fmt: skip
        return Evidence(found, None, first.text, fix_of(HEAT_FIX, {}))
    return restated(case, "cpu-throttled") or Evidence(())


PATTERN = Pattern(
    id="cpu-throttled",
    title="Cores are slowed down for heat",
    proof="literature",
    looks_like="Everything on a node takes longer than on its neighbours, and no counter of work or waiting says why.",
    confirmed_by="The kernel's counters of thermal throttling, for a tenth of the time or longer; or its line that "
    "the clock is throttled, where it is printed only if it lasts (from 5.6 on). On AMD and Arm: a processor's cooling "
    "device is on, its frequency limit fell, or it is busy and slower than its base frequency.",
    refuted_by="Nothing: it is only considered where the kernel counts or says it.",
    remedy="Cooling: fans, filters, inlet temperature. Drain the node while it lasts.",
    stop_gap="put less load on the machine while it is hot, or drain it",
    examine=examine,
    symptoms=frozenset({"event", "cpu_throttled"}),
    hog="Nobody on this node.",
    culprit="Nobody on this node.",
    known_from="drivers/thermal/intel/therm_throt.c",
)
