"""A PodWatch in a thread of its own, and what it said."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from zombiescope.node.cluster.access import Access
from zombiescope.node.cluster.changes import PodEvent
from zombiescope.node.cluster.pod import Pod
from zombiescope.node.cluster.pod_watch import PodWatch


class Follower:
    def __init__(self, node: str, kubeconfig: Path, longest_s: float = 0.3) -> None:
        self.events: list[PodEvent] = []
        self.gone: list[str] = []
        self.lines: list[str] = []
        self.waits: list[float] = []
        self._longest_s = longest_s
        self.watch = PodWatch(
            node, on_pod=self._seen, on_gone=lambda pod: self.gone.append(pod.name), on_event=self.events.append,
            say=self.lines.append, sleep=self._sleep,
        )  # fmt: skip
        self.seen: list[Pod] = []
        self._access = Access(str(kubeconfig), node)

    async def _sleep(self, seconds: float) -> None:
        """As long as it wants is noted; a test does not wait that long."""
        self.waits.append(seconds)
        await asyncio.sleep(min(seconds, self._longest_s))

    def _seen(self, pod: Pod) -> None:
        self.seen.append(pod)

    @property
    def names(self) -> set[str]:
        return {pod.name for pod in self.watch.pods.values()}

    def pod(self, name: str) -> Pod:
        (found,) = [pod for pod in self.watch.pods.values() if pod.name == name]
        return found

    async def run(self, stop: asyncio.Event) -> None:
        task = asyncio.create_task(self.watch.run(self._access.async_client))
        await stop.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@contextmanager
def following(node: str, kubeconfig: Path, longest_s: float = 0.3) -> Iterator[Follower]:
    follower = Follower(node, kubeconfig, longest_s)
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(follower.run(stop),))
    thread.start()
    try:
        yield follower
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()


def until(true: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)
