"""What is printed where perf is refused fits the kernel that refused it, and the files it names are shipped."""

from __future__ import annotations

import configparser
import errno
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from zombiescope.kernel import privileges
from zombiescope.kernel.perf_event import Clock
from zombiescope.kernel.privileges import Privileges
from zombiescope.recorder.perf_access import DROP_IN, explain, grant, has_perfmon

ROOT = Path(__file__).parents[3]
NOTHING = Privileges(frozenset(), 2, None, None, None, None, 40)
OLD = replace(NOTHING, last_capability=37)


def test_a_kernel_before_5_8_is_not_told_of_a_capability_that_it_does_not_have() -> None:
    said = grant(OLD, "4.19.81", has_perfmon(OLD, "4.19.81"))
    assert said.startswith("CAP_SYS_ADMIN: this kernel (4.19.81) has no CAP_PERFMON")
    assert DROP_IN in said
    assert "perf_event_paranoid=-1" in said


def test_a_kernel_that_has_it_is_told_of_nothing_else() -> None:
    said = grant(NOTHING, "6.1.0", has_perfmon(NOTHING, "6.1.0"))
    assert said == "CAP_PERFMON (AmbientCapabilities=CAP_PERFMON)"


def test_distributions_that_refuse_more_are_told_both_ways() -> None:
    strict = replace(NOTHING, perf_event_paranoid=4)
    assert "CAP_SYS_ADMIN or sysctl kernel.perf_event_paranoid=2" in grant(strict, "6.1.0", perfmon=True)
    held = replace(strict, effective=frozenset({"CAP_PERFMON"}))
    assert "perf_event_paranoid=2" in grant(held, "6.1.0", perfmon=True)


@pytest.mark.parametrize(
    ("held", "perfmon"), [("CAP_PERFMON", True), ("CAP_SYS_ADMIN", True), ("CAP_SYS_ADMIN", False)]
)
def test_what_is_granted_already_is_not_asked_for_again(held: str, perfmon: bool) -> None:
    said = grant(replace(NOTHING, effective=frozenset({held})), "5.10.0", perfmon)
    assert "security module" in said


@pytest.mark.parametrize(
    ("last", "release", "has"),
    [(40, "6.1.0", True), (37, "4.19.81", False), (39, "4.18.0-477.el8", True), (None, "4.19.81", False),
     (None, "5.8.0", True), (None, "odd", True)],
)  # fmt: skip
def test_the_kernel_is_asked_before_its_release(last: int | None, release: str, has: bool) -> None:
    assert has_perfmon(replace(NOTHING, last_capability=last), release) == has


def test_a_refusal_says_the_setting_and_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges, "read", lambda: OLD)
    why, remedy = explain(PermissionError(errno.EACCES, "Permission denied"), Clock("cpu-clock", 99))
    assert why == "perf_event_open: Permission denied (perf_event_paranoid=2)"
    assert "no CAP_PERFMON" in remedy


def capabilities(path: Path) -> dict[str, set[str]]:
    """What the last lines of a unit's section set, as systemd reads them: an empty one begins anew."""
    found: dict[str, set[str]] = {}
    for line in path.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and name in ("AmbientCapabilities", "CapabilityBoundingSet"):
            found[name] = found.get(name, set()) | set(value.split()) if value else set()
    return found


def test_the_drop_in_replaces_one_capability_and_is_shipped() -> None:
    unit, drop_in = (capabilities(ROOT / "packaging" / name) for name in ("zombiescope.service", DROP_IN))
    for name, granted in unit.items():
        assert drop_in[name] == granted - {"CAP_PERFMON"} | {"CAP_SYS_ADMIN"}
    assert all(f"{name}=\n" in (ROOT / "packaging" / DROP_IN).read_text() for name in unit), (
        "or it would add to the unit's"
    )
    shipped = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"][
        "share/zombiescope"
    ]
    assert f"packaging/{DROP_IN}" in shipped
    assert {Path(name).name for name in shipped} == {
        path.name
        for path in (ROOT / "packaging").iterdir()
        if path.is_file()
        and not path.name.startswith("deb-")
        and path.name != "copyright"  # of the Debian package alone
    }
    parsed = configparser.ConfigParser(strict=False)
    parsed.read_string((ROOT / "packaging" / DROP_IN).read_text())
    assert parsed.sections() == ["Service"]
