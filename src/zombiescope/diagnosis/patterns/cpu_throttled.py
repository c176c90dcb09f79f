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
    title="Cores are thermally throttled",
    proof="literature",
    looks_like="Everything on a node takes longer than on its neighbours, and no counter of work or waiting shows why.",
    confirmed_by="The kernel's thermal throttling counters advance for a tenth of the time or longer; or the kernel "
    "logs throttling (from 5.6 on it logs only lasting throttling). On AMD and Arm: a processor's cooling "
    "device is on, its frequency limit fell, or it is busy and slower than its base frequency.",
    refuted_by="Nothing: the pattern is only considered when one of these is present.",
    remedy="Repair the cooling: fans, filters, inlet temperature. Drain the node until then.",
    stop_gap="put less load on the machine while it is hot, or drain it",
    examine=examine,
    symptoms=frozenset({"event", "cpu_throttled"}),
    hog="No process on this node.",
    culprit="No process on this node.",
    known_from="drivers/thermal/intel/therm_throt.c",
    repair="CONTACT_SUPPORT",
)
