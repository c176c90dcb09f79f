"""The last resort: this node is rebooted. Never part of a plan by itself, only where it was asked for by name.

Of no cluster: systemd does it, a minute later, so that it can be written down, and called off. A Kubernetes node needs
the permit that its drain has taken; where kured looks after it, kured is asked (/run/reboot-required), for it knows
the cluster's windows and locks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from zombiescope.fix.actions.node import as_failure
from zombiescope.fix.step import ActionFailedError, bounded
from zombiescope.kernel.process import read
from zombiescope.kernel.procfile import names_in, read_file, read_text
from zombiescope.node.cluster.maintenance import SENTINEL, holds_permit, pods_left
from zombiescope.node.systemd import reboot

KIND = "node.reboot"
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Reboot:
    boot_id: str
    """Of the boot that is to end: afterwards it is another one."""
    node: str | None = None
    """As Kubernetes calls it; None: it is in no cluster."""
    kubeconfig: str | None = None
    by_kured: bool = False
    namespace: str = "zombiescope"
    most: int = 1
    kind: ClassVar[str] = KIND

    def __post_init__(self) -> None:
        if not isinstance(self.boot_id, str) or not self.boot_id:
            raise ValueError("which boot is to end is not known")

    def arguments(self) -> dict[str, Any]:
        return asdict(self)

    def command(self) -> tuple[str, ...] | None:
        return ("touch", str(SENTINEL)) if self.by_kured else reboot.SCHEDULE

    def touches(self) -> tuple[str, ...]:
        lines = [f"{os.uname().nodename} goes down: by kured, when it may" if self.by_kured else
                 f"{os.uname().nodename} goes down in a minute"]  # fmt: skip
        if self.node is not None:
            with as_failure():
                lines.append(f"{pods_left(self.node, self.kubeconfig)} pods that could be evicted are on it now")
        return bounded([*lines, *_largest()])

    def before(self) -> dict[str, Any]:
        return {"boot_id": self.boot_id, "asked": SENTINEL.exists() if self.by_kured else reboot.is_scheduled()}

    def is_applied(self) -> bool:
        """It is down and up again since, or on its way."""
        if _boot_id() != self.boot_id:
            return True
        return SENTINEL.exists() if self.by_kured else reboot.is_scheduled()

    def apply(self) -> None:
        if _boot_id() != self.boot_id:
            return
        if self.node is not None:
            with as_failure():
                self._need_permit(self.node)
        try:
            if self.by_kured:
                SENTINEL.touch()
            else:
                reboot.schedule("zombiescope fix: this node is rebooted; shutdown -c calls it off")
        except reboot.RebootError as error:
            raise ActionFailedError(error.what, error.fix) from error
        except OSError as error:
            raise ActionFailedError(f"{SENTINEL}: {error.strerror}") from error

    def undo(self, before: Mapping[str, Any]) -> None:
        """Called off while it is still to come; what somebody else asked for stays. Afterwards nothing brings the old
        boot back, and nothing has to."""
        if _boot_id() != self.boot_id or before.get("asked"):
            return
        try:
            if self.by_kured:
                SENTINEL.unlink(missing_ok=True)
            elif reboot.is_scheduled():
                reboot.cancel()
        except reboot.RebootError as error:
            raise ActionFailedError(error.what, error.fix) from error
        except OSError as error:
            raise ActionFailedError(f"{SENTINEL}: {error.strerror}") from error

    def _need_permit(self, node: str) -> None:
        if not holds_permit(node, self.kubeconfig, self.namespace, self.most):
            raise ActionFailedError(f"{node} has no permit to go down", "drain it first: --drain")


def _boot_id() -> str:
    return (read_text("/proc/sys/kernel/random/boot_id") or "").strip()


def _largest() -> Iterator[str]:
    """Who ends with it: how many processes, and those with most memory."""
    sizes = {int(name): _resident(name) for name in names_in("/proc") or () if name.isdecimal()}
    living = {pid: size for pid, size in sizes.items() if size}
    yield f"{len(living):,} processes end"
    for pid in sorted(living, key=lambda pid: -living[pid])[:MOST_NAMED]:
        if (found := read(pid, cmdline=False)) is not None:
            where = f", {found.systemd_cgroup}" if found.systemd_cgroup else ""
            yield f"{found.comm} (pid {pid}{where}) with {living[pid] >> 20:,} MB of memory"


def _resident(pid: str) -> int:
    """In bytes; 0 for a thread of the kernel, and for what has ended."""
    words = (read_file(f"/proc/{pid}/statm") or b"").split()
    return int(words[1]) * os.sysconf("SC_PAGE_SIZE") if len(words) > 1 else 0


ACTIONS = (Reboot,)
