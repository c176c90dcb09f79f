"""/sys/class/net/IF/queues/tx-N/tx_timeout: how often the watchdog found a transmit queue stuck.

The kernel counts it for every driver that has a watchdog, also when the log line is printed only once a
boot. One number a queue; its files are kept open. After a card is reset with another number of queues the
old files answer ENODEV: call follow() again.

Cost: one pread a queue, so not for veths: pass cards (nic_queue.physical_interfaces). Absence: virtual
interfaces have the file with a 0 for ever; interfaces without queues have none.
"""

from collections.abc import Iterable

from zombiescope.kernel.procfile import ProcFile, at, names_in, number


class TxTimeouts:
    """The transmit queues of the given interfaces."""

    __slots__ = ("_files", "_root")

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._files: dict[tuple[str, int], ProcFile] = {}

    def follow(self, interfaces: Iterable[str]) -> None:
        """Replaces the queues being read by those that the interfaces have now."""
        self.close()
        for interface in interfaces:
            for queue in self._queues(interface):
                path = f"sys/class/net/{interface}/queues/tx-{queue}/tx_timeout"
                self._files[interface, queue] = ProcFile(at(self._root, path))

    def _queues(self, interface: str) -> list[int]:
        names = names_in(at(self._root, f"sys/class/net/{interface}/queues")) or ()
        return sorted(int(name[3:]) for name in names if name.startswith("tx-") and name[3:].isdecimal())

    def read(self) -> dict[tuple[str, int], int]:
        """(interface, queue) -> timeouts since the driver made the queue; unreadable queues are left out."""
        read = ((key, file.read()) for key, file in self._files.items())
        counts = ((key, number(data.strip())) for key, data in read if data is not None)
        return {key: count for key, count in counts if count is not None}

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
