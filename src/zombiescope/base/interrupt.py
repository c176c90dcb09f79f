"""Ctrl-C at any moment, and nothing but an end.

Python answers SIGINT with an exception wherever it happens to be: in the middle of an import, in a callback whose
exceptions are printed and dropped, in C code that makes another error of it. Therefore

    while modules load      the signal ends the process as it ends any other Unix program (`end_silently`)
    while a command runs    it is an exception that lets files be closed and children be ended, and it is remembered:
                            whatever error comes of it is no defect (`Interrupts`)
    while we become another program, or start one of our own, it waits (`hold`): the mask is inherited, and that
                            program takes it when it is ready (`end_silently`, or a handler of its own and `release`)

Only the standard library is imported here, and of that only what the interpreter has loaded already.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of, and loaded already
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

_AGAIN_S = 0.02
INTERRUPTED = 130
"""What a shell says of a process that Ctrl-C ended."""


def end_silently() -> None:
    """From here on Ctrl-C ends this process at once; one that waited does so now."""
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    release()


def hold() -> None:
    """From here on Ctrl-C waits, over exec and in children too."""
    _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGINT,))


def release() -> None:
    """One that waited is delivered before this returns."""
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGINT,))


class Interrupts:
    """While it is entered, Ctrl-C raises KeyboardInterrupt in the main thread, also where an earlier one was lost."""

    def __init__(self) -> None:
        self.seen = False
        self._hook = sys.unraisablehook
        self._before: Any = _signal.SIG_DFL

    def __enter__(self) -> Interrupts:
        sys.unraisablehook = self._lost
        self._before = _signal.signal(_signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        _signal.signal(_signal.SIGINT, self._before)
        sys.unraisablehook = self._hook

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.seen = True
        raise KeyboardInterrupt

    def _lost(self, unraisable: Any) -> None:
        """In a callback or a destructor the exception ends nothing: it is raised again as soon as that is over."""
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            import _thread
            import threading

            again = threading.Timer(_AGAIN_S, _thread.interrupt_main)
            again.daemon = True
            again.start()
        else:
            self._hook(unraisable)
