"""The process of the live diagnosis as the recorder sees it: started once, asked by a line, answering by a line, never
waited for.

    we write   FROM_US                                            diagnose what happened from there to now
    it writes  {"beat": N, "stage": .., "pass": PID}              every two seconds; N grows while it gets on
               {"ready": true, "selftest": {"ok": .., "why": ..}} once, when it has loaded what it needs
               {"cpu_us": .., "new": .., "open": .., "serious": .., "exit": .., "total_cpu_us": .., "rss_bytes": ..}

Loading numpy, pyarrow and the diagnosis costs many times what a pass does, so it is done once (diagnosis/standby.py
says what it costs in memory). It ends when our end of its pipe is closed, however we end. A pass, or a load, that does
not get on for SILENT_S hangs; what does not end by itself is killed. One that ended is reported, and started again
after a second, then after 2, 4, ... and at most 60 s.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from select import POLLIN, poll
from time import monotonic
from typing import Any, ClassVar

from zombiescope.base import python as _python
from zombiescope.recorder.piped_process import KILL_S, MEGABYTE, PipedProcess, Restarts, signal_name
from zombiescope.store.health import LIVE_DIAGNOSIS

MODULE = "zombiescope.diagnosis.standby"
ANSWER_S = 300.0
"""The standby process ends a pass that makes no progress itself, sooner than this (diagnosis/pass_limit.py)."""
FIRST_WAIT_US, MOST_WAIT_US = 1_000_000, 60_000_000
LINE_BYTES = 65536
END_S = 2.0
ENVIRONMENT = _python.FORKING
_ENDS = {
    signal.SIGXCPU: "used more CPU time than it may (20 s)",
    signal.SIGKILL: "was killed: it made no progress for 60 s, or memory ran out",
}


class DoctorProcess(PipedProcess):
    MEMORY_BYTES: ClassVar = 2048 * MEGABYTE
    """Of the standby process; a pass has a tighter limit of its own."""

    def __init__(self, node_dir: Path, module: str = MODULE) -> None:
        super().__init__(LIVE_DIAGNOSIS)
        self._arguments = _python.module(module, str(node_dir))
        self._restarts = Restarts(FIRST_WAIT_US, MOST_WAIT_US)
        self._asked_us: int | None = None
        self._step: tuple[object, str] | None = None
        """How far the load or the pass has got, as it last said."""
        self._pass_pid: int | None = None
        self._selftest: str | None = None
        self.ready = False
        self.looks = 0

    @property
    def free(self) -> bool:
        """Whether it can be asked."""
        return self.ready and self._asked_us is None

    # --- starting and asking ------------------------------------------------------------------------------------------

    def start(self, now_us: int) -> None:
        """If it does not run, and it is time. Raises OSError."""
        if self._pid is None and self._restarts.is_due(now_us):
            self._restarts.hold(now_us)
            self.kill_s = KILL_S
            self._spawn(self._arguments, _python.environment() | ENVIRONMENT)

    def ask(self, now_us: int, from_us: int) -> None:
        """For one pass. Only when it is free. Raises OSError."""
        assert self.free
        os.write(self._to, b"%d\n" % from_us)
        self._asked_us = now_us
        self.looks += 1

    # --- listening ----------------------------------------------------------------------------------------------------

    def listen(self) -> tuple[dict[str, Any] | None, str | None]:
        """(the answer, if there is one; why it ended, once, if it has). Never waits."""
        if self._pid is None:
            return None, None
        return self._take_answer(), self._reaped()

    def awaited(self, timeout_s: float) -> bool:
        """Whether it is free within that time: for the recorder's own end, when nothing else is left to do. One that
        is still loading is not waited for."""
        if not self.ready:
            return False
        watched, end_s = poll(), monotonic() + timeout_s
        watched.register(self._from, POLLIN)
        while not self.free and (left_s := end_s - monotonic()) > 0:
            for _, found in watched.poll(left_s * 1000):
                if not found & POLLIN:
                    return False
            self._take_answer()
        return self.free

    def _take_answer(self) -> dict[str, Any] | None:
        self._hear(LINE_BYTES)
        while (line := self._line()) is not None:
            said = self._message(line)
            if said is not None and (answer := self._understood(said)) is not None:
                return answer
        return None

    def _beats(self, said: dict[str, Any]) -> None:
        """A beat without a step further is none."""
        step = said["beat"], str(said.get("stage") or "")[:40]
        found = said.get("pass")
        self._pass_pid = found if isinstance(found, int) and found > 1 else None
        if step != self._step or (self.ready and self._asked_us is None):
            self._step = step
            self._lives()

    def _understood(self, said: dict[str, Any]) -> dict[str, Any] | None:
        self._step = self._pass_pid = None
        self._cpu_us = int(said.get("total_cpu_us") or self._cpu_us)
        self.peak_rss_bytes = max(self.peak_rss_bytes, int(said.get("rss_bytes") or 0))
        if said.get("ready"):
            self._becomes_ready(said.get("selftest"))
            return None
        self._asked_us = None
        self._restarts.worked()
        self._judge(said)
        return said

    def _becomes_ready(self, selftest: object) -> None:
        self.ready, self.kill_s = True, ANSWER_S
        failed = selftest if isinstance(selftest, dict) and not selftest.get("ok") else None
        self._selftest = None if failed is None else str(failed.get("why") or "no reason")
        if failed is not None:
            fix = str(failed.get("fix") or "zombiescope selftest")[:200]
            self.pulse.fails(f"failed: self-test: {str(self._selftest)[:300]}", fix)
        else:
            self._worked()

    def _judge(self, answer: dict[str, Any]) -> None:
        reason = self._errors.take_reason()
        if answer.get("exit"):
            self.pulse.fails(pass_failure(int(answer["exit"]), answer.get("why") or reason))
        elif self._selftest is None:
            self._worked()

    # --- its life -----------------------------------------------------------------------------------------------------

    def _subject(self) -> int:
        return self._pass_pid or super()._subject()

    def _doing(self, silent_s: float) -> str:
        stage = f" ({self._step[1]})" if self._step is not None and self._step[1] else ""
        if not self.ready:
            return f"has been loading for {silent_s:.0f} s without getting on{stage}"
        if self._asked_us is None:
            return super()._doing(silent_s)
        return f"has not got on in a diagnosis pass for {silent_s:.0f} s{stage}"

    # --- its end ------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends it and waits for its end; a pass that hangs ends with it."""
        if self._pid is None:
            return
        self._hear(LINE_BYTES)
        self._signal(signal.SIGTERM)
        if not self._gone_within(END_S):
            self._signal(signal.SIGKILL)
            self._gone_within(END_S)
        self._close()

    def _forget(self, cpu_us: int) -> None:
        super()._forget(cpu_us)
        self._asked_us, self.ready = None, False
        self._step = self._pass_pid = None


def pass_failure(exit_code: int, why: object) -> str:
    """How a pass ended that gave no answer."""
    more = f" ({why})" if why else ""
    if str(why).startswith("MemoryError"):
        return "exceeded its memory limit (1,024 MB) in a diagnosis pass"
    if exit_code >= 0:
        return f"failed in a diagnosis pass: {why or f'exit code {exit_code}'}"
    if -exit_code in _ENDS:
        return f"failed: a diagnosis pass {_ENDS[signal.Signals(-exit_code)]}"
    return f"crashed: {signal_name(-exit_code)} in a diagnosis pass{more}"
