"""Lists of exit statuses as RestartPreventExitStatus= and its kin hold them: numbers, names and signals."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass

from zombiescope.base.text import number

_NAMES = {
    "SUCCESS": 0, "FAILURE": 1, "INVALIDARGUMENT": 2, "NOTIMPLEMENTED": 3, "NOPERMISSION": 4, "NOTINSTALLED": 5,
    "NOTCONFIGURED": 6, "NOTRUNNING": 7, "USAGE": 64, "DATAERR": 65, "NOINPUT": 66, "NOUSER": 67, "NOHOST": 68,
    "UNAVAILABLE": 69, "SOFTWARE": 70, "OSERR": 71, "OSFILE": 72, "CANTCREAT": 73, "IOERR": 74, "TEMPFAIL": 75,
    "PROTOCOL": 76, "NOPERM": 77, "CONFIG": 78, "CHDIR": 200, "NICE": 201, "FDS": 202, "EXEC": 203, "MEMORY": 204,
    "LIMITS": 205, "OOM_ADJUST": 206, "SIGNAL_MASK": 207, "STDIN": 208, "STDOUT": 209, "CHROOT": 210, "IOPRIO": 211,
    "TIMERSLACK": 212, "SECUREBITS": 213, "SETSCHEDULER": 214, "CPUAFFINITY": 215, "GROUP": 216, "USER": 217,
    "CAPABILITIES": 218, "CGROUP": 219, "SETSID": 220, "CONFIRM": 221, "STDERR": 222, "PAM": 224, "NETWORK": 225,
    "NAMESPACE": 226, "NO_NEW_PRIVILEGES": 227, "SECCOMP": 228, "SELINUX_CONTEXT": 229, "PERSONALITY": 230,
    "APPARMOR": 231, "ADDRESS_FAMILIES": 232, "RUNTIME_DIRECTORY": 233, "CHOWN": 235, "SMACK_PROCESS_LABEL": 236,
    "KEYRING": 237, "STATE_DIRECTORY": 238, "CACHE_DIRECTORY": 239, "LOGS_DIRECTORY": 240,
    "CONFIGURATION_DIRECTORY": 241, "NUMA_POLICY": 242, "CREDENTIALS": 243, "BPF": 244, "EXCEPTION": 255,
}  # fmt: skip

EXEC = 203
"""What systemd answers for a program that could not be executed."""


@dataclass(frozen=True, slots=True)
class StatusSet:
    codes: frozenset[int] = frozenset()
    signals: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.codes or self.signals)

    def __str__(self) -> str:
        return ", ".join([*map(str, sorted(self.codes)), *sorted(self.signals)])


NO_STATUS = StatusSet()


def parse(words: Iterable[str]) -> StatusSet:
    """What is neither a number up to 255 nor a known name is passed over, as systemd does."""
    codes, signals = set(), set()
    for word in words:
        name = word.upper().removeprefix("SIG")
        if (code := number(word)) is not None:
            if code <= 255:
                codes.add(code)
        elif word in _NAMES:
            codes.add(_NAMES[word])
        elif f"SIG{name}" in signal.Signals.__members__:
            signals.add(f"SIG{name}")
    return StatusSet(frozenset(codes), frozenset(signals))


def from_numbers(codes: Iterable[int], signals: Iterable[int]) -> StatusSet:
    """As the D-Bus properties hold it."""
    known = {number.value: number.name for number in signal.Signals}
    return StatusSet(frozenset(codes), frozenset(known.get(number, f"signal {number}") for number in signals))
