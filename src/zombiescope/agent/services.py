"""The services' own process: `python -m zombiescope.agent.services '<json>'`, started by the supervisor.

It has none of the recorder's capabilities. It reads the configuration, starts a thread for each service, publishes
every two seconds how each of them is, and ends when the supervisor has ended. On SIGHUP it reads the
configuration again: services whose section changed are started again, the others are left alone.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zombiescope.agent import node_parts, parts
from zombiescope.agent.config.load import ConfigurationError, Loaded, load, needs_restart
from zombiescope.agent.health import MARGIN_S, Health, State
from zombiescope.agent.metrics.cost_account import resident_bytes
from zombiescope.agent.own_families import RECORDER_STARTS, SERVICES_STARTS
from zombiescope.agent.service import Context, Progress
from zombiescope.agent.tally import Tally
from zombiescope.agent.threads import ServiceThreads
from zombiescope.base import json as _json
from zombiescope.base.confinement import confine
from zombiescope.base.text import printable
from zombiescope.store import health, locate
from zombiescope.store.health import Part

STOP_S = 6.0
SUPERVISOR_S = health.SILENT_S - MARGIN_S
"""The supervisor is heard every two seconds."""


def say(line: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"zombiescope agent: {printable(line)}\n")
        sys.stderr.flush()


CONFIGURATION = "configuration"
LISTED = "`zombiescope agent --check-config` lists all, and the drop-in"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the supervisor starts it with."""

    config: str | None
    strict: bool
    node_dir: str
    node: str
    beats: int
    starts: int
    counted_us: int | None = None
    limits: tuple[str, ...] = ()
    """Settings that the systemd unit defeats."""


class Services:
    def __init__(self, settings: Settings) -> None:
        """Raises ConfigurationError."""
        self._settings = settings
        self._loaded = read_configuration(settings)
        self._tally = Tally(parts.families())
        self._tally.add(SERVICES_STARTS, settings.starts + 1)
        self._health = Health(say)
        self._progress = Progress(settings.counted_us)
        self._heartbeat = Heartbeat(Path(settings.node_dir), self._health, say)
        self._health.say(node_parts.SUPERVISOR, "ok")
        self._say_without_effect()
        self._threads = ServiceThreads(self._context)
        self._signals: set[int] = set()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._running: dict[str, list[str]] = {}

    def _context(self, name: str) -> Context:
        given = self._settings
        host = os.uname().nodename
        return Context(name, Path(given.node_dir), given.node, host, self._tally, self._health, self._progress)

    def run(self) -> None:
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: self._signals.add(number))
        self._heartbeat.begin()
        for part in parts.PARTS:
            self._start(part)
        gc.collect()
        gc.freeze()
        self._beat(b"alive\n")
        self._health.beat(node_parts.SUPERVISOR, SUPERVISOR_S)
        while not self._signals & {signal.SIGINT, signal.SIGTERM} and self._turn():
            if signal.SIGHUP in self._signals:
                self._signals.discard(signal.SIGHUP)
                self._reload()
        self._heartbeat.end()
        self._threads.stop_all(STOP_S)

    def _say_without_effect(self) -> None:
        """Of the configuration: also in /readyz, for as long as it is so."""
        lost = [*(f"{one.key} is not known" for one in self._loaded.unknown), *self._settings.limits]
        state: State = "degraded" if lost else "ok"
        self._health.say(CONFIGURATION, state, "; ".join(lost) + "; " + LISTED if lost else "")

    # --- services ----------------------------------------------------------------------------------------------------

    def _start(self, part: parts.Part) -> None:
        services = part.services(self._loaded.sections[part.name])
        self._running[part.name] = [one.name for one in services]
        for service in services:
            if not self._threads.start(service):
                self._health.say(service.name, "failed", "the old one has not ended; it keeps running unchanged")

    def _reload(self) -> None:
        try:
            loaded = read_configuration(self._settings)
        except ConfigurationError as error:
            say(f"the configuration was not read again, the old one holds: {error}")
            self._beat(b"reloaded\n")
            return
        before, self._loaded = self._loaded, loaded
        self._say_without_effect()
        for name, section in loaded.sections.items():
            for path in needs_restart(before.sections[name], section, name):
                say(f"{path} was changed; that takes a restart of the agent")
        for part in parts.PARTS:
            if before.sections[part.name] != loaded.sections[part.name]:
                say(f"{part.name}: started again with its new settings")
                self._threads.stop(self._running[part.name])
                for name in self._running[part.name]:
                    self._health.forget(name)
                self._start(part)
        self._beat(b"reloaded\n")

    # --- the supervisor ----------------------------------------------------------------------------------------------

    def _turn(self) -> bool:
        """False when the supervisor has ended."""
        self._heartbeat.publish()
        ready, _, _ = select.select([self._wake_read, 0], [], [], self._heartbeat.wait_s)
        if self._wake_read in ready:
            with suppress(BlockingIOError):
                os.read(self._wake_read, 512)
        if 0 in ready:
            said = os.read(0, 65536)
            if not said:
                return False
            for line in said.splitlines():
                self._understand(line)
        return self._beat(b"counted %d\n" % (self._progress.counted_us or 0))

    def _understand(self, line: bytes) -> None:
        with suppress(ValueError, TypeError):
            said = _json.loads(line)
            self._health.beat(node_parts.SUPERVISOR, SUPERVISOR_S)
            self._health.worked(node_parts.SUPERVISOR)
            self._health.recorder_down = str(said["recorder_down"]) if said.get("recorder_down") else None
            self._health.recorder_restarts = max(0, int(said["recorder_starts"]) - 1)
            self._tally.set(RECORDER_STARTS, float(said["recorder_starts"]))

    def _beat(self, line: bytes) -> bool:
        try:
            os.write(self._settings.beats, line)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


def read_configuration(settings: Settings) -> Loaded:
    """Raises ConfigurationError when it cannot be used; what this version does not know is said."""
    loaded = load(Path(settings.config) if settings.config else None, parts.sections())
    refused = list(loaded.mistakes) if settings.strict else loaded.wrong
    if refused:
        raise ConfigurationError("; ".join(map(str, refused[:5])), "`zombiescope agent --check-config` lists all")
    for mistake in loaded.unknown:
        say(f"WARNING: {mistake}; it has no effect")
    return loaded


def main() -> int:
    if len(sys.argv) != 2:
        say("its services are started by `zombiescope agent`")
        return 2
    given: dict[str, Any] = json.loads(sys.argv[1])
    confine(programs=True)  # it speaks to the network, and has no use for what the recorder may
    try:
        services = Services(Settings(**given))
    except ConfigurationError as error:
        say(str(error))
        return 2
    services.run()
    return 0


# --- heartbeat --------------------------------------------------------------------------------------------------------
# The heartbeat file of the services' process: how each of them is, every two seconds (store/health.py).
#
# A process that did not run itself, because it was stopped or the node is starved, blames none of its services for it:
# what is late is excused by as much as the process was late.

SAY_AFTER = 5
"""Turns: the recorder makes the runtime directory when it starts."""


class Heartbeat:
    """The services' heartbeat file. A runtime directory that cannot be written is logged once, and tried again."""

    def __init__(self, node_dir: Path, own: Health, say: Callable[[str], None]) -> None:
        self._node_dir, self._health, self._say = node_dir, own, say
        self._path = health.path_of(locate.runtime_directory(), os.getpid())
        self._since = time.time()
        self._published_s = time.monotonic()
        self._turns = 0
        self._is_said = False

    def begin(self) -> None:
        health.clear_dead(self._path.parent, self._node_dir, node_parts.SERVICES)

    @property
    def wait_s(self) -> float:
        """Until the next turn."""
        return max(0.0, self._published_s + health.EVERY_S - time.monotonic())

    def publish(self) -> None:
        """If it is time."""
        if self._turns and self.wait_s > 0:
            return
        now_s = time.monotonic()
        late_s = now_s - self._published_s - health.EVERY_S
        if late_s > MARGIN_S / 2:
            self._health.excuse(late_s)
        self._published_s, self._turns = now_s, self._turns + 1
        own = Part(
            node_parts.SERVICES, "ok", self._since, time.time(), self._turns, pid=os.getpid(),
            rss_bytes=resident_bytes("self"),
        )  # fmt: skip
        try:
            health.publish(self._path, node_parts.SERVICES, self._node_dir, [own, *self._health.parts()])
        except OSError as error:
            if not self._is_said and self._turns > SAY_AFTER:
                self._is_said = True
                self._say(f"no heartbeat of the services in {self._path.parent}: {error.strerror}")

    def end(self) -> None:
        health.withdraw(self._path)


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    os._exit(code)  # a service that hangs does not keep the process
