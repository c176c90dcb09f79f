"""Another Python of ours at the other ends of three pipes: told by lines, telling by lines, never waited for.

What may hang, or load much, is done by a process of its own (live diagnosis, waits, GPUs, hardware, stacks, compaction,
page); this is what those have in common. It is started by posix_spawn with our environment less what would let the
current directory in, at the priority that anybody has, and with a limit for its memory (RLIMIT_DATA; RLIMIT_AS would
count the files that numpy and pyarrow map). Its words are read without waiting and up to a bound; an answer without an
end is dropped. Its CPU time is counted as ours. Somebody else may reap it: then it is gone. One that cannot be ended is
left to the kernel, and there is never a second one beside it.

Its life is told by its `pulse`, and by nothing else:

    failed   it ended by itself (with the signal, or the last line of its traceback), or sent what is no JSON object
    hung     no line for `silent_s`, although it sends one every _helper.BEAT_S; or it is stopped. Killed after `kill_s`

`watch` looks at the process itself (/proc/PID/stat), every other second. It blames nothing that it has not seen: one
that waits in the kernel names the function, one that had no CPU says so.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from zombiescope.base import helper as _helper
from zombiescope.base import json as _json
from zombiescope.base import python as _python
from zombiescope.base.text import printable
from zombiescope.kernel import process_vitals
from zombiescope.kernel.process_vitals import Vitals
from zombiescope.recorder import priority
from zombiescope.recorder.error_lines import ErrorLines
from zombiescope.recorder.pulse import Pulse
from zombiescope.store.health import Part

READ_BYTES = 65536
OURS = (signal.SIGINT,)
"""Ctrl-C reaches everybody in the terminal, and is for the recorder alone: it ends its helpers itself."""
SILENT_S = 8.0
STARVED_S = 30.0
"""A process that got no CPU is late, not broken; so is one that is busy and has not finished loading."""
KILL_S = 60.0
MEGABYTE = 1 << 20
_DOUBLINGS = 16
_SHOWN, _SHOWN_ERROR = 60, 200


class Restarts:
    """When it may be started again: after `first`, then twice that, ... at most `most`, of whatever unit."""

    def __init__(self, first: int, most: int) -> None:
        self._first, self._most = first, most
        self._failures = 0
        self.next: float = 0

    def is_due(self, now: float) -> bool:
        return now >= self.next

    def hold(self, now: float) -> None:
        """Not before the next step from now."""
        self.next = now + min(self._first << self._failures, self._most)
        self._failures = min(self._failures + 1, _DOUBLINGS)

    def worked(self) -> None:
        """It did what it is for: the next one is not held as long."""
        self._failures = 0


class PipedProcess:
    PEAK_AT_END: ClassVar = True
    """Whether what the kernel says at its end counts for its peak: it cannot be less than ours was when we made it."""
    MEMORY_BYTES: ClassVar[int | None] = None
    """Of its own heap, stacks and anonymous mappings."""
    STARVED_RATIO: ClassVar = 0.02
    """Of a core: one that wants to run and had less since it was last heard is late, and does not hang."""
    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(self, name: str = "helper") -> None:
        self.pulse = Pulse(name)
        self.silent_s = self.blocked_s = SILENT_S
        """How long it may be silent; while the kernel keeps it waiting."""
        self.kill_s = KILL_S
        self.rss_bytes: int | None = None
        self.say: Callable[[str], None] = _pass_on
        """Where lines of its standard error go that are no traceback."""
        self._pid: int | None = None
        self._to = self._from = self._errors_from = -1
        self._said = b""
        self._errors = ErrorLines()
        self._ended_cpu_us = self._cpu_us = 0
        self._heard_s = 0.0
        self._is_loading = False
        """It has not said anything since it was started."""
        self._cpu_then: tuple[float, float] | None = None
        """When it was last heard: (its CPU seconds, the time)."""
        self._is_asked_to_end = self._is_killed = False
        self.peak_rss_bytes = 0
        self.runs = 0

    @property
    def pid(self) -> int | None:
        return self._pid

    @property
    def running(self) -> bool:
        return self._pid is not None

    @property
    def cpu_us(self) -> int:
        return self._ended_cpu_us + self._cpu_us

    # --- its start ----------------------------------------------------------------------------------------------------

    def _spawn(
        self, arguments: list[str], environment: Mapping[str, str] | None = None, inherited: Mapping[int, int] = {}
    ) -> None:
        """`inherited`: its number for a descriptor of ours -> that descriptor. Raises OSError."""
        theirs_in, self._to = os.pipe2(os.O_CLOEXEC)
        self._from, theirs_out = os.pipe2(os.O_CLOEXEC)
        self._errors_from, theirs_error = os.pipe2(os.O_CLOEXEC)
        given = {0: theirs_in, 1: theirs_out, 2: theirs_error, **inherited}
        actions = [(os.POSIX_SPAWN_DUP2, ours, theirs) for theirs, ours in given.items()]
        made = {**(_python.environment() if environment is None else environment), _helper.PARENT: str(os.getpid())}
        try:
            with priority.usual():
                self._pid = os.posix_spawn(arguments[0], arguments, made, file_actions=actions, setsigmask=OURS)
        except OSError as error:
            self._close()
            self.pulse.fails(f"cannot be started: {error.strerror or error}")
            raise
        finally:
            for descriptor in (theirs_in, theirs_out, theirs_error):
                os.close(descriptor)
        for descriptor in (self._to, self._from, self._errors_from):
            os.set_blocking(descriptor, False)
        self._begin_life()

    def _begin_life(self) -> None:
        assert self._pid is not None
        if self.MEMORY_BYTES is not None:
            with suppress(OSError):  # it has ended already, or may not be limited here
                resource.prlimit(self._pid, resource.RLIMIT_DATA, (self.MEMORY_BYTES, self.MEMORY_BYTES))
        self._said, self._errors = b"", ErrorLines()
        self._is_asked_to_end = self._is_killed = False
        self._heard_s, self._cpu_then = self.clock(), None
        self._is_loading = True
        self.runs += 1
        self.pulse.starts()

    # --- its words ----------------------------------------------------------------------------------------------------

    def _hear(self, most_bytes: int) -> bool:
        """Reads what it has said, up to a bound. Whether there was anything."""
        if len(self._said) >= most_bytes and b"\n" not in self._said:
            self._garbage(self._said)
            self._said = b""
        before = len(self._said)
        with suppress(OSError):
            while len(self._said) < most_bytes and (piece := os.read(self._from, READ_BYTES)):
                self._said += piece
        self._hear_errors()
        return len(self._said) > before

    def _hear_errors(self) -> None:
        with suppress(OSError):
            if piece := os.read(self._errors_from, READ_BYTES):
                for line in self._errors.feed(piece):
                    self.say(line)

    def _line(self) -> bytes | None:
        """The first that it said and nobody took."""
        line, newline, rest = self._said.partition(b"\n")
        if not newline:
            return None
        self._said = rest
        return line

    def _lines(self) -> list[bytes]:
        *lines, self._said = self._said.split(b"\n")
        return lines

    def _message(self, line: bytes) -> dict[str, Any] | None:
        """What a line says; None where nobody can tell, which is a failure, and where it is no more than a beat."""
        try:
            said = _json.loads(line)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            self._garbage(line)
            return None
        if "beat" in said:
            self._beats(said)
            return None
        self._lives()
        return said

    def _beats(self, _said: dict[str, Any]) -> None:
        """It has nothing to say."""
        self._lives()

    def _lives(self) -> None:
        self._heard_s = self.clock()
        self._is_loading = False
        self.pulse.answers()

    def _worked(self) -> None:
        """It did what it is for."""
        self._lives()
        self.pulse.works()

    def _garbage(self, line: bytes) -> None:
        shown = line[:_SHOWN].decode("ascii", "backslashreplace")
        self.pulse.fails(f"sent what cannot be understood: {shown!r}")

    # --- its life -----------------------------------------------------------------------------------------------------

    def part(self) -> Part:
        return self.pulse.part(self._pid, self.rss_bytes if self._pid is not None else None)

    def watch(self) -> None:
        """Every other second: whether it is stopped or hangs; one that does for long is killed."""
        now_s, vitals = self.clock(), self._vitals()
        if vitals is None or self._is_asked_to_end:
            return
        silent_s = now_s - self._heard_s
        self.rss_bytes = vitals.rss_bytes
        if self._cpu_then is None or silent_s < _helper.BEAT_S:
            self._cpu_then = vitals.cpu_s, now_s
        if vitals.is_stopped:
            self._hangs("is stopped (SIGSTOP)", f"kill -CONT {self._subject()}")
        elif silent_s >= self._patience_s(vitals, now_s):
            self._hangs(self._silence(silent_s, vitals))
        elif self.pulse.state == "hung" and silent_s < self.silent_s:
            self.pulse.answers()
        if silent_s >= self.kill_s and not vitals.is_in_kernel and not self._is_starved(vitals, now_s):
            self._kill()

    def _patience_s(self, vitals: Vitals, now_s: float) -> float:
        if self._is_starved(vitals, now_s) or (self._is_loading and vitals.is_runnable):
            return STARVED_S
        return self.blocked_s if vitals.is_in_kernel else self.silent_s

    def _vitals(self) -> Vitals | None:
        """Of the process itself where it is stopped, else of the one that works for it."""
        if self._pid is None:
            return None
        own = process_vitals.read(self._pid)
        if own is None or own.is_stopped or self._subject() == self._pid:
            return own
        worker = process_vitals.read(self._subject())
        return own if worker is None else Vitals(worker.state, worker.cpu_s, own.rss_bytes + worker.rss_bytes)

    def _subject(self) -> int:
        """The process whose silence is judged: itself, or one that works for it."""
        assert self._pid is not None
        return self._pid

    def _is_starved(self, vitals: Vitals, now_s: float) -> bool:
        if self._cpu_then is None or not vitals.is_runnable:
            return False
        cpu_s, then_s = self._cpu_then
        return vitals.cpu_s - cpu_s < self.STARVED_RATIO * (now_s - then_s)

    def _silence(self, silent_s: float, vitals: Vitals) -> str:
        what = self._doing(silent_s)
        place = process_vitals.waits_in(self._subject())
        if self._is_starved(vitals, self.clock()):
            return f"{what}: it got no CPU"
        if vitals.is_runnable:
            return f"{what}: it is busy"
        where = f" in {place}" if place else ""
        return f"{what}: it waits{where}" + (", and no signal ends that" if vitals.is_in_kernel else "")

    def _doing(self, silent_s: float) -> str:
        return f"does not answer for {silent_s:.0f} s"

    def _hangs(self, why: str, fix: str = "") -> None:
        if self.pulse.state != "failed" or "cannot be understood" not in self.pulse.why:
            self.pulse.hangs(why, fix, max(0.0, self.clock() - self._heard_s))

    def _kill(self) -> None:
        self._is_killed = True
        self._signal(signal.SIGKILL)

    def _died(self, exit_code: int | None) -> None:
        """Once, when it has ended."""
        reason = self._errors.take_reason() or (self._errors.last[:_SHOWN_ERROR] if exit_code else None)
        if self._is_asked_to_end:
            self.pulse.rests("not needed now")
        elif self._is_killed and self.pulse.state == "hung":
            self.pulse.hangs(f"{self.pulse.why}; it was killed")
        elif exit_code is None:
            self.pulse.fails("is gone: another process reaped it")
        else:
            self.pulse.fails(crash(exit_code, reason, self.MEMORY_BYTES))

    # --- its end ------------------------------------------------------------------------------------------------------

    def _signal(self, number: int) -> None:
        assert self._pid is not None
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _reaped(self, options: int = os.WNOHANG) -> str | None:
        """Why it ended, once, if it has."""
        assert self._pid is not None
        try:
            pid, status, usage = os.wait4(self._pid, options)
        except ChildProcessError:  # somebody else reaped it
            self._ends(None, self._cpu_us)
            return "it is gone"
        if pid == 0:
            return None
        if self.PEAK_AT_END:
            self.peak_rss_bytes = max(self.peak_rss_bytes, usage.ru_maxrss * 1024)
        code = os.waitstatus_to_exitcode(status)
        self._ends(code, int((usage.ru_utime + usage.ru_stime) * 1e6))
        return _why(code)

    def _ends(self, exit_code: int | None, cpu_us: int) -> None:
        self._hear_errors()
        self._died(exit_code)
        self._forget(cpu_us)

    def _gone_within(self, seconds: float) -> bool:
        """For the recorder's own end, when nothing else is left to do."""
        self._is_asked_to_end = True
        end_s = time.monotonic() + seconds
        while self._pid is not None and not self._reaped():
            if time.monotonic() >= end_s:
                return False
            time.sleep(0.01)
        return True

    def _forget(self, cpu_us: int) -> None:
        self._ended_cpu_us += cpu_us
        self._cpu_us, self._pid, self.rss_bytes = 0, None, None
        self._close()

    def _close_input(self) -> None:
        """It ends when its input does."""
        self._is_asked_to_end = True
        with suppress(OSError):
            os.close(self._to)
        self._to = -1

    def _close(self) -> None:
        for descriptor in (self._to, self._from, self._errors_from):
            with suppress(OSError):
                os.close(descriptor)
        self._to = self._from = self._errors_from = -1


def crash(exit_code: int, reason: str | None, memory_bytes: int | None = None) -> str:
    """How a process ended that should not have ended."""
    if reason is not None and reason.startswith("MemoryError") and memory_bytes is not None:
        return f"exceeded its memory limit of {memory_bytes // MEGABYTE} MB"
    more = f" ({reason})" if reason else ""
    if exit_code == -signal.SIGKILL:
        return f"was killed (SIGKILL), by a user or for lack of memory{more}"
    if exit_code < 0:
        return f"crashed: {signal_name(-exit_code)}{more}"
    return f"crashed: {reason}" if reason else f"ended by itself with exit code {exit_code}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _why(exit_code: int) -> str:
    return f"it was ended by {signal_name(-exit_code)}" if exit_code < 0 else f"it ended with {exit_code}"


def _pass_on(line: str) -> None:
    with suppress(OSError):
        sys.stderr.write(printable(line) + "\n")
        sys.stderr.flush()
