"""What every test may ask for, and what holds for all: limits of time, and no process left behind. A kernel test that
cannot run says why; with ZOMBIESCOPE_REQUIRE_KERNEL=1 that is a failure."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.helpers import children, limits, quarantine

REQUIRE = "ZOMBIESCOPE_REQUIRE_KERNEL"

# A shell that runs its jobs in the background ignores SIGINT, and so would every child that a test stops with it.
signal.signal(signal.SIGINT, signal.default_int_handler)
children.mark_what_is_started()


LIMIT = pytest.StashKey[float]()
QUARANTINE = quarantine.read(quarantine.FILE.read_text())


class Needs:
    """Conditions of a test on the machine it runs on."""

    def lack(self, what: str) -> NoReturn:
        if os.environ.get(REQUIRE):
            pytest.fail(f"{what} (and {REQUIRE} is set)")
        pytest.skip(what)

    def root(self) -> None:
        if os.geteuid() != 0:
            self.lack("needs root")

    def binary(self, name: str, package: str) -> str:
        found = shutil.which(name)
        if found is None:
            self.lack(f"needs {name} (Debian package {package})")
        assert found is not None
        return found

    def file(self, path: str) -> None:
        if not Path(path).exists():
            self.lack(f"needs {path}")

    def program(self, name: str) -> str:
        return self.binary(name, name)

    def tool(self, name: str) -> None:
        self.binary(name, name)

    def npm(self, name: str, at_least_node: int = 0) -> Path:
        """The folder of a package of tests/npm/package.json, where scripts/need-tests puts it."""
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        place = Path(cache) / "zombiescope-tests" / "node_modules" / name
        if not place.is_dir():
            self.lack(f"needs the npm package {name} (scripts/need-tests installs it)")
        if at_least_node:
            done = subprocess.run(
                [self.binary("node", "nodejs"), "--version"], capture_output=True, text=True, check=True
            )
            if int(done.stdout.strip().removeprefix("v").partition(".")[0]) < at_least_node:
                self.lack(f"needs Node.js {at_least_node} or newer, this is {done.stdout.strip()}")
        return place

    def kmsg(self) -> None:
        if not os.access("/dev/kmsg", os.R_OK | os.W_OK):
            self.lack("needs /dev/kmsg, readable and writable")

    def perf_events(self) -> None:
        from zombiescope.kernel import perf_event

        try:
            perf_event.probe(0, perf_event.Clock())
        except OSError as error:
            self.lack(f"needs perf_event_open: {error.strerror}")

    def tracefs(self) -> Path:
        """The mounted tracefs; mounted for the rest of the run if it was not."""
        from zombiescope.kernel import tracefs

        self.root()
        place = tracefs.find()
        if place is None:
            place = Path("/sys/kernel/tracing")
            if os.system(f"mount -t tracefs nodev {place}") != 0:
                self.lack("needs tracefs")
        return place

    def memory_cgroup(self) -> Path:
        """The mount of the hierarchy that owns the memory controller, writable."""
        from zombiescope.kernel import cgroup

        self.root()
        memory = cgroup.of_controller("memory", cgroup.hierarchies())
        if memory is None or memory.mount is None or not os.access(memory.mount, os.W_OK):
            self.lack("needs a writable memory cgroup hierarchy")
        assert memory is not None
        assert memory.mount is not None
        return Path(memory.mount)


@pytest.fixture
def needs() -> Needs:
    return Needs()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    return quarantine.run(item, nextitem, QUARANTINE) or None


# --- a test that goes wrong ends -------------------------------------------------------------------------------------


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        limits.set_by_marker(item)


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    if settings.method != "signal":
        return None
    item.stash[LIMIT] = settings.timeout
    limits.arm(item, settings.timeout)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool | None:
    if LIMIT not in item.stash:
        return None
    limits.disarm()
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """A failure switched the alarm off; fixtures of a test that failed can hang too."""
    if LIMIT in item.stash:
        limits.arm(item, item.stash[LIMIT])
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """What a fixture of a wider scope starts outlives the test that asked for it first."""
    if fixturedef.scope == "function":
        return (yield)
    with children.owned_by(fixturedef.argname):
        return (yield)


@pytest.fixture(autouse=True)
def no_process_left_behind() -> Iterator[None]:
    before = children.own()
    with children.owned_by("test") as owner:
        yield
    left = children.left_by(owner, before)
    children.kill(set(left))
    assert not left, f"processes that the test left behind: {left}"


@pytest.fixture(autouse=True)
def same_place_in_the_queue() -> Iterator[None]:
    """Tests share a process: one that changes its priority or its cores changes them for all that follow."""
    before = _place()
    yield
    after = _place()
    os.setpriority(os.PRIO_PROCESS, 0, before[0])
    os.sched_setaffinity(0, before[1])
    assert after == before, f"the test changed priority or cores of its own process: {before}, now {after}"


def _place() -> tuple[int, set[int]]:
    return os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0)


def pytest_sessionfinish() -> None:
    children.kill(children.of_this_run())
