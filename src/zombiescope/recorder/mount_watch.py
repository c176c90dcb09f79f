"""Whether something was mounted or unmounted: poll() on mountinfo, which reads nothing and waits for nothing."""

from __future__ import annotations

import os
import select

from zombiescope.kernel.procfile import at


class MountWatch:
    def __init__(self, root: str = "/") -> None:
        self._path = at(root, "proc/self/mountinfo")
        self._fd = -1

    def changed(self) -> bool:
        """Since the last call; False where it cannot be watched."""
        try:
            if self._fd < 0:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            watch = select.poll()
            watch.register(self._fd, select.POLLERR | select.POLLPRI)
            return bool(watch.poll(0))
        except OSError:
            return False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
