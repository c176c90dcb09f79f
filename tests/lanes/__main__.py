"""Run a dependency lane: `python -m tests.lanes oldest`, `newest`, `job`, or `range PACKAGE`.

oldest    the minimum of every requirement of pyproject.toml, extras included
newest    no pins: what pip installs today
job       zombiescope-mark in an environment with the old packages of a job, and a recorder in its own environment
range     the newest release of each major version of one package, from its minimum on; the short list

Each lane builds the wheel, installs it into an environment without this source tree, and runs the acceptance list on
every supported Python of this machine. `oldest` runs the unit tests on the oldest Python, `newest` on the newest one.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from tests.lanes import environment, interpreters, job, requirements
from tests.lanes.environment import Environment, LaneError

ACCEPTANCE = Path(__file__).with_name("acceptance.py")
PAGE = requirements.ROOT / "docs" / "python.md"
SHORT_EXTRAS = ("agent", "fleet", "pandas")
"""Without ray, whose package is larger than all others together."""
NOT_COVERED = "not covered: no such Python on this machine"
UNIT_TESTS = (
    "agent", "documents", "fleet", "imports", "notebook", "query", "store", "web", "test_public_face.py",
)  # fmt: skip
"""Those that use the packages that a lane varies: below tests/unit."""


@dataclass(frozen=True, slots=True)
class Outcome:
    lane: str
    python: str
    result: str
    seconds: float

    @property
    def covered(self) -> bool:
        return self.result != NOT_COVERED


def main(arguments: Sequence[str]) -> int:
    given = _parsed(arguments)
    if given.lane == "range":
        outcomes = _range(given.package, given.python)
    elif given.lane == "job":
        outcomes = [_job(_versions(given)[0])]
    else:
        outcomes = [_lane(given.lane, version, given) for version in _versions(given)]
    print(f"\n{'lane':<16} {'Python':<8} {'result':<40} seconds")
    for one in outcomes:
        print(f"{one.lane:<16} {one.python:<8} {one.result:<40} {one.seconds:7.0f}")
    return int(any(one.result.startswith("FAILED") for one in outcomes) or not any(one.covered for one in outcomes))


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    description, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m tests.lanes", description=description, epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("lane", choices=("oldest", "newest", "job", "range"))
    parser.add_argument("package", nargs="?", default="pyarrow", help="for range (default: pyarrow)")
    parser.add_argument("--python", action="append", metavar="3.N", help="only this Python; may be repeated")
    parser.add_argument("--short", action="store_true", help="the oldest Python, the short list, no unit tests")
    parser.add_argument("--no-unit-tests", action="store_true", help="the acceptance list only")
    parser.add_argument("--keep", action="store_true", help="leave the environments in build/lanes")
    return parser.parse_args(arguments)


def _versions(given: argparse.Namespace) -> list[str]:
    if given.python:
        return list(given.python)
    supported = interpreters.supported(requirements.project())
    if given.short or given.lane == "job":
        return [next(filter(interpreters.found, supported))]
    return supported


def _lane(lane: str, version: str, given: argparse.Namespace) -> Outcome:
    began = time.monotonic()

    def outcome(result: str) -> Outcome:
        return Outcome(lane, version, result, time.monotonic() - began)

    interpreter = interpreters.found(version)
    if interpreter is None:
        return outcome(NOT_COVERED)
    project = requirements.project()
    extras = SHORT_EXTRAS if given.short else sorted(project.extras)
    pins = requirements.minima(project.requirements(extras, version)) if lane == "oldest" else []
    unit = not (given.short or given.no_unit_tests) and version == _unit_version(lane)
    try:
        here = environment.made(
            f"{lane}-{version}{'-short' if given.short else ''}", interpreter,
            environment.wheel_for(interpreter, version), extras, pins, requirements.test_tools() if unit else (),
            keep=given.short,
        )  # fmt: skip
    except LaneError as error:
        _say(str(error))
        return outcome("FAILED: not installed")
    _check_pins(here, pins)
    failed = [] if _accepted(here, short=given.short) else ["acceptance"]
    if unit and not _unit_tests(here):
        failed.append("unit tests")
    if not failed and not given.short and not given.keep:
        shutil.rmtree(here.place)
    return outcome(f"FAILED: {', '.join(failed)}" if failed else "ok" + (", with unit tests" if unit else ""))


def _job(version: str) -> Outcome:
    began = time.monotonic()
    interpreter = interpreters.found(version)
    if interpreter is None:
        return Outcome("job", version, NOT_COVERED, 0.0)
    wheel = environment.wheel_for(interpreter, version)
    recorder = environment.made(f"recorder-{version}", interpreter, wheel, (), ())
    here = job.made(interpreter)
    changed = job.changed(here)
    wrong = [] if list(changed) == ["zombiescope-mark"] else [f"installing changed {changed}"]
    if not job.mark_arrives(recorder, here):
        wrong.append("the mark did not arrive")
    shutil.rmtree(here.place)
    shutil.rmtree(recorder.place)
    result = f"FAILED: {', '.join(wrong)}" if wrong else "ok: nothing else changed, the mark arrived"
    return Outcome("job", version, result, time.monotonic() - began)


def _unit_version(lane: str) -> str | None:
    versions = interpreters.supported(requirements.project())
    return next(filter(interpreters.found, versions if lane == "oldest" else reversed(versions)), None)


def _check_pins(here: Environment, pins: Sequence[str]) -> None:
    """A lane that did not install what it claims to test proves nothing."""
    installed = {_canonical(name): version for name, version in here.versions().items()}
    for name, _, version in (pin.partition("==") for pin in pins):
        if Version(installed[_canonical(name)]) != Version(version):
            raise SystemExit(f"{name} {installed[_canonical(name)]} is installed, not {version}")


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _accepted(here: Environment, *, short: bool, steps: Sequence[str] = ()) -> bool:
    command = [here.python, str(ACCEPTANCE), here.command, "--docs", str(PAGE), *(["--core"] if short else []), *steps]
    return subprocess.run(command, cwd=here.place, check=False).returncode == 0


def _unit_tests(here: Environment) -> bool:
    """The tests of this source tree with the installed package: `src` is not on the path."""
    tests = [f"tests/unit/{name}" for name in UNIT_TESTS]
    command = [here.python, "-m", "pytest", "-q", "--numprocesses", "auto", "--dist", "worksteal", *tests]
    return subprocess.run(command, cwd=requirements.ROOT, check=False).returncode == 0


def _range(package: str, pythons: Sequence[str] | None) -> list[Outcome]:
    """Each major version of `package`, in one environment, on the oldest Python."""
    version = (pythons or interpreters.supported(requirements.project()))[0]
    interpreter = interpreters.found(version)
    if interpreter is None:
        raise SystemExit(f"no Python {version} on this machine")
    wheel = environment.wheel_for(interpreter, version)
    here = environment.made(f"range-{package}", interpreter, wheel, SHORT_EXTRAS, ())
    outcomes = []
    for release in _releases(here, package, version):
        began = time.monotonic()
        here.pip("install", "--only-binary", ":all:", f"{package}=={release}")
        result = "ok" if _accepted(here, short=True) else "FAILED: acceptance"
        outcomes.append(Outcome(f"{package} {release}", version, result, time.monotonic() - began))
    shutil.rmtree(here.place)
    return outcomes


def _releases(here: Environment, package: str, python: str) -> list[str]:
    """The newest release of each major version that pip finds, from the minimum on."""
    project = requirements.project()
    required = [each for each in project.requirements(project.extras, python) if each.name.lower() == package.lower()]
    command = [here.python, "-m", "pip", "index", "versions", package]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    line = next(line for line in shown.splitlines() if line.startswith("Available versions:"))
    versions = line.partition(":")[2].replace(",", " ").split()
    newest: dict[int, str] = {}
    for release in versions:  # newest first
        if all(each.specifier.contains(release) for each in required):
            newest.setdefault(int(release.split(".")[0]), release)
    return [newest[major] for major in sorted(newest)]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
