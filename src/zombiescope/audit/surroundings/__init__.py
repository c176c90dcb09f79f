"""What no recording holds, read from the running node before and after a window: processes that stay defunct
(defunct.py), cgroups that use up their CPU quota (quotas.py), and the kernel log since boot (kernel_log.py).

`check` watches for as long as it records; `audit` for as long as it reads unit files. What is about the state of the
node becomes findings by rules of the audit, what happened in the window becomes symptoms of a diagnosis.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from zombiescope.audit.surroundings import defunct, kernel_log, quotas
from zombiescope.audit.surroundings.defunct import Defunct
from zombiescope.audit.surroundings.kernel_log import LogSinceBoot
from zombiescope.audit.surroundings.quotas import Quotas, Throttled
from zombiescope.base.missing import Missing

LOG_GRANT = "CAP_SYSLOG, or sysctl kernel.dmesg_restrict=0"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """None: could not be read; `missing` says why."""

    defunct: Defunct | None = None
    throttled: tuple[Throttled, ...] | None = None
    log: LogSinceBoot | None = None
    missing: tuple[Missing, ...] = field(default=())


class Watch:
    """Made before the window; `end` after it. Quotas cost a walk over the cgroups, so they are read on request."""

    def __init__(self, root: str = "/", *, with_quotas: bool = False) -> None:
        self._root = root
        self._processes = defunct.look(root)
        self._quotas = quotas.read(root) if with_quotas else None

    def end(self) -> Surroundings:
        log = kernel_log.read()
        found = defunct.defunct(self._processes, defunct.look(self._root))
        throttled, missing = self._throttled()
        return Surroundings(
            defunct=found,
            throttled=throttled,
            log=log if isinstance(log, LogSinceBoot) else None,
            missing=(*_missing(found, log), *missing),
        )

    def _throttled(self) -> tuple[tuple[Throttled, ...] | None, list[Missing]]:
        if self._quotas is None:
            return None, []
        after = quotas.read(self._root)
        throttled = quotas.throttled(self._quotas, after) if after.found or after.whole else None
        return throttled, [_cut_short(after)] if after.why is not None else []


def _cut_short(quota: Quotas) -> Missing:
    grant = "mount the cpu controller" if not quota.found else "nothing: 'zombiescope record' reads the busiest"
    return Missing("cgroups with a CPU quota", quota.why or "", grant)


def _missing(found: Defunct | None, log: LogSinceBoot | str) -> list[Missing]:
    missing = []
    if isinstance(log, str):
        missing.append(Missing("kernel log since boot", log, LOG_GRANT))
    if found is None or found.others_hidden:
        why = "/proc shows only this user's processes (hidepid)" if found else "/proc cannot be listed"
        missing.append(Missing("other users' processes", why, "run it as root, or mount /proc without hidepid"))
    return missing
