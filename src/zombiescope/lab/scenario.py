"""A scenario: something real that is done to this machine, what is true about it, and what it needs.

A file in scenarios/ has one SCENARIO. Its program gets ready, waits for the word, and then does one thing until it is
killed; the supervisor (supervisor.py) starts it in cgroups of its own and removes everything that bears its name.
The truth is what the kernel shows (`frames` were seen with perf), never what the diagnosis happens to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Literal

from zombiescope.lab.sandbox import Sandbox

RUNTIMES = ("runc", "containerd", "containerd-shim", "dockerd", "docker", "kubelet", "crio", "podman", "systemd")
"""Of containers: they do what they are told."""
HERE = "here"
"""Where a scenario runs that does not run in a machine of `lab node`."""
MB = 1 << 20
GB = 1 << 30
LONGEST_S = 60
"""The longest that a fault may hurt."""

PREAMBLE = r"""
import ctypes, mmap, os, random, signal, sys, time
def name_is(name):
    open("/proc/self/comm", "w").write(name)
name_is(sys.argv[1])
signal.alarm(int(sys.argv[2]))
args = sys.argv[3:]
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def dies_with_its_parent():
    libc.prctl(1, 9)
def wait_for_the_word():
    print("ready", flush=True)
    sys.stdin.readline()
"""

Kind = Literal["fault", "healthy", "replay"]


@dataclass(frozen=True, slots=True)
class Truth:
    """What a right diagnosis says. `hog` is who uses the CPU, `culprit` who is to blame: each a process's name, or a
    part of a cgroup's path. A healthy load has no pattern, and no warning may be raised about it."""

    pattern: str | None
    hog: str = ""
    culprit: str = ""
    image: str = ""
    """Of the culprit's containers."""
    pod: str = ""
    """NAMESPACE/NAME, of a culprit in Kubernetes."""
    never: tuple[str, ...] = ()
    """Who only carries out what others ask for: blamed for nothing, and no plan stops it. Names of programs, which are
    also those of their units."""

    def document(self) -> dict[str, str | None]:
        return {name: getattr(self, name) or None for name in ("pattern", "hog", "culprit", "image", "pod")}

    @property
    def blames(self) -> tuple[str, ...]:
        """Everything that has to be said of who is to blame."""
        return tuple(word for word in (self.culprit, self.image, self.pod) if word)


@dataclass(frozen=True, slots=True)
class Needs:
    """What the machine must have. `memory_bytes` is also the most that it may take, `processes` likewise."""

    memory_bytes: int = 256 * MB
    cores: int = 1
    processes: int = 64
    root: bool = True
    programs: tuple[tuple[str, str], ...] = ()
    """(program, Debian package)"""
    files: tuple[str, ...] = ()
    """Kernel features, by the file that shows them."""
    controllers: tuple[str, ...] = ()
    """Of cgroups, passed down to those of the scenario."""
    real_time: bool = False
    """It changes its scheduling class, which a cpu cgroup of its own forbids (RT_GROUP_SCHED)."""
    systemd: bool = False
    """As the machine's init; where there is none, it runs in `lab node`."""
    node: bool = False
    """It would hurt the whole machine, so it runs in `lab node` only."""


def _nothing(_: Sandbox) -> list[str]:
    return []


def _no_build() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Scenario:
    id: str
    title: str
    does: str
    """What will happen to this machine, for the person who is asked."""
    truth: Truth
    script: str
    comm: str = ""
    """Of the program; where it is not the hog."""
    frames: str = ""
    """Hot kernel frames that were seen, and where."""
    seconds: float = 12.0
    """How long it hurts at most; it is ended sooner when it was named."""
    ready_s: int = 120
    """How long it may take to get ready, on a slow machine."""
    needs: Needs = field(default_factory=Needs)
    build: Callable[[], object] = _no_build
    """Makes what takes minutes and is kept: before anything is started, and once."""
    prepare: Callable[[Sandbox], list[str]] = _nothing
    """Makes what the program needs in its sandbox, and gives the program's arguments."""
    cpu: int | None = None
    many: bool = False
    """It takes more than one core, so it gets no more than its share: the doctor has to run, too."""
    kind: Kind = "fault"
    of_the_node: bool = False
    """A healthy load that a wide node has no more of than a small one: a kubelet with its pods is there once."""
    whole_node: bool = False
    """It concerns systemd or what cgroup v2 does otherwise, so the score asks for it on such a node, too."""

    @property
    def program_name(self) -> str:
        return self.comm or self.truth.hog or self.id[:15]


@cache
def every() -> tuple[Scenario, ...]:
    """All scenarios: faults, then healthy loads, by id."""
    from zombiescope.lab import scenarios

    found = [import_module(f"{scenarios.__name__}.{one.name}").SCENARIO for one in iter_modules(scenarios.__path__)]
    return tuple(sorted(found, key=lambda one: (one.kind != "fault", one.id)))


def by_id(name: str) -> Scenario:
    """Raises KeyError."""
    return {one.id: one for one in every()}[name]
