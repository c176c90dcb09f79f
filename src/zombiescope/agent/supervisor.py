"""The supervisor: keeps the recorder and the services running, hands signals on, speaks to systemd. Nothing else.

It holds the capabilities that the recorder needs, so it opens no socket but systemd's, reads no configuration and no
recording, and imports nothing but the standard library. The services' process has none of them (services.py).

    recorder   that cannot start at all ends us: it has said why. Later it is started again, and that is said
    services   that are silent for REPORT_S are reported, for SILENT_S killed and started again; the recorder does not
               notice
    SIGHUP     is handed to the services, which read the configuration again
    SIGTERM    ends both; the recorder writes its last frame first
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from zombiescope.agent.child import Child, exit_text, started
from zombiescope.agent.notify import Notifier
from zombiescope.base import interrupt
from zombiescope.base import python as _python
from zombiescope.base.text import printable
from zombiescope.store import locate

SILENT_S = 60.0
REPORT_S = 8.0
TURN_S = 2.0
START_TURN_S = 0.1
RECORDER_STOP_S, SERVICES_STOP_S = 15.0, 8.0
_SERVICES = "zombiescope.agent.services"


def say(line: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"zombiescope agent: {printable(line)}\n")
        sys.stderr.flush()


class Supervisor:
    def __init__(self, given: dict[str, Any], notifier: Notifier) -> None:
        """`given`: {"recorder": settings of the recorder, "services": what the services' process is started with}."""
        self._given = given
        self._notifier = notifier
        self._node_dir = Path(given["node_dir"])
        self._recorder = Child("the recorder", self._start_recorder)
        self._services = Child("the services", self._start_services)
        self._beats = -1
        self._heard_s = self._told_s = 0.0
        self._silence_reported = False
        self._recorder_down: str | None = None
        self._counted_us: int | None = None
        """How far the services had counted the recording when they last said so."""
        self._ready = self._services_up = False
        self._signals: set[int] = set()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    # --- the two processes -------------------------------------------------------------------------------------------

    def _start_recorder(self) -> subprocess.Popen[bytes]:
        settings = {**self._given["recorder"], "parent_pid": os.getpid()}
        return started(_python.module("zombiescope.recorder", json.dumps(settings)), _python.steady_environment())

    def _start_services(self) -> subprocess.Popen[bytes]:
        if self._beats >= 0:
            os.close(self._beats)
        self._beats, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        settings = {**self._given["services"], "beats": theirs, "starts": self._services.starts}
        settings["counted_us"] = self._counted_us
        try:
            arguments = _python.module(_SERVICES, json.dumps(settings))
            made = started(arguments, _python.steady_environment(), stdin=subprocess.PIPE, pass_fds=[theirs])
        finally:
            os.close(theirs)
        self._heard_s, self._services_up = time.monotonic(), False
        return made

    # --- the loop ----------------------------------------------------------------------------------------------------

    def run(self) -> int:
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, self._note)
        interrupt.release()
        code = 0
        while not self._signals & {signal.SIGINT, signal.SIGTERM}:
            if signal.SIGHUP in self._signals:
                self._reload()
            try:
                self._start_what_is_due()
            except OSError as error:
                say(f"a process cannot be started: {error.strerror}")
            if (failed := self._reap()) is not None:
                code = failed
                break
            self._become_ready()
            self._notifier.alive()
            self._wait()
        return self._stop() or code

    def _note(self, number: int, _: object) -> None:
        self._signals.add(number)

    def _start_what_is_due(self) -> None:
        now_s = time.monotonic()
        if self._recorder.start_if_due(now_s) and self._recorder.starts > 1:
            self._recorder_down = None
            self._tell_services()
        if self._services.start_if_due(now_s) or now_s - self._told_s >= TURN_S:
            self._tell_services()

    def _reap(self) -> int | None:
        """An exit code with which we end too."""
        now_s = time.monotonic()
        code = self._recorder.ended(now_s)
        if code is not None:
            if not self._ready:
                return code or 1
            wait_s = self._recorder.next_start_s - now_s
            self._recorder_down = f"{exit_text(code)}; it is started again in {wait_s:.0f} s"
            say(f"the recorder {exit_text(code)}; it is started again in {wait_s:.0f} s")
            self._tell_services()
        code = self._services.ended(now_s)
        if code is not None:
            if code == 2:  # a configuration that cannot be used; it has said so
                return code
            say(
                f"the services {exit_text(code)}; they are started again in {self._services.next_start_s - now_s:.0f} s"
            )
        elif self._services.running:
            self._judge_silence(now_s - self._heard_s)
        return None

    def _judge_silence(self, silent_s: float) -> None:
        """`status` and /readyz show it by the age of their heartbeat file; this is for the log."""
        if silent_s > SILENT_S:
            say(f"the services have been silent for {SILENT_S:.0f} s and are ended")
            self._services.signal(signal.SIGKILL)
            self._heard_s = time.monotonic()
        elif silent_s > REPORT_S and self._services_up and not self._silence_reported:
            self._silence_reported = True
            say(f"the services have been silent for {silent_s:.0f} s; they are ended after {SILENT_S:.0f} s")

    def _become_ready(self) -> None:
        if self._ready or not self._services_up or not locate.is_locked(self._node_dir):
            return
        self._ready = True
        self._notifier.ready(f"recording into {self._node_dir.parent}")

    def _wait(self) -> None:
        timeout_s = TURN_S if self._ready else START_TURN_S
        if self._notifier.watchdog_s is not None:
            timeout_s = min(timeout_s, self._notifier.watchdog_s / 3)
        for child in (self._recorder, self._services):
            if not child.running:
                timeout_s = min(timeout_s, max(0.01, child.next_start_s - time.monotonic()))
        watched = [self._wake_read] + ([self._beats] if self._services.running else [])
        ready, _, _ = select.select(watched, [], [], timeout_s)
        if self._wake_read in ready:
            with suppress(BlockingIOError):
                os.read(self._wake_read, 512)
        if self._beats in ready:
            self._listen()

    def _listen(self) -> None:
        with suppress(BlockingIOError):
            said = os.read(self._beats, 4096)
            if not said:  # it has ended; SIGCHLD follows
                time.sleep(0.01)
                return
            self._heard_s, self._services_up, self._silence_reported = time.monotonic(), True, False
            counted = [line[8:] for line in said.split(b"\n") if line.startswith(b"counted ")]
            if counted and counted[-1].isdigit() and int(counted[-1]):
                self._counted_us = int(counted[-1])
            if b"reloaded" in said and self._ready:
                self._notifier.ready(f"recording into {self._node_dir.parent}")

    # --- talking to them ---------------------------------------------------------------------------------------------

    def _tell_services(self) -> None:
        """What only we know, a JSON object a line, every two seconds: that we live too. A service process that does not
        read is no reason to wait."""
        self._told_s = time.monotonic()
        process = self._services.process
        if process is None or process.stdin is None:
            return
        recorder = self._recorder.process
        line = {
            "recorder_starts": self._recorder.starts, "recorder_pid": recorder.pid if recorder else None,
            "recorder_down": self._recorder_down,
        }  # fmt: skip
        with suppress(OSError):
            os.set_blocking(process.stdin.fileno(), False)
            os.write(process.stdin.fileno(), json.dumps(line).encode() + b"\n")

    def _reload(self) -> None:
        self._signals.discard(signal.SIGHUP)
        self._notifier.reloading()
        self._services.signal(signal.SIGHUP)
        if not self._services.running:
            self._notifier.ready("the services are not running")

    def _stop(self) -> int:
        self._notifier.stopping()
        self._services.signal(signal.SIGTERM)
        self._recorder.signal(signal.SIGTERM)
        code = self._recorder.wait(RECORDER_STOP_S)
        self._services.wait(SERVICES_STOP_S)
        if code in (None, -signal.SIGTERM):  # one that had just been started dies of it, as it was told to
            return 0
        return 1 if code < 0 else code
