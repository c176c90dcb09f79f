"""The requirements of pyproject.toml, and the oldest versions that they allow, as constraints for pip."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Project:
    """What pyproject.toml declares."""

    name: str
    classifiers: tuple[str, ...]
    required: tuple[Requirement, ...]
    extras: dict[str, tuple[Requirement, ...]]

    def requirements(self, extras: Iterable[str], python: str) -> list[Requirement]:
        """Those that hold on this Python ("3.11")."""
        every = [*self.required, *(each for extra in extras for each in self._of(extra))]
        return [each for each in every if each.marker is None or _holds(each.marker, python)]

    def _of(self, extra: str) -> Iterator[Requirement]:
        """An extra may name another one of ours: zombiescope[fleet]."""
        for each in self.extras[extra]:
            if each.name == self.name:
                yield from (one for inner in sorted(each.extras) for one in self._of(inner))
            else:
                yield each


def project(text: str | None = None) -> Project:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text() if text is None else text)["project"]
    extras = {name: tuple(map(Requirement, lines)) for name, lines in table["optional-dependencies"].items()}
    return Project(table["name"], tuple(table["classifiers"]), tuple(map(Requirement, table["dependencies"])), extras)


def minima(requirements: Iterable[Requirement]) -> list[str]:
    """ "name==version" for each. Raises ValueError for a requirement without a minimum."""
    return sorted({f"{each.name}=={minimum(each)}" for each in requirements}, key=str.lower)


def minimum(requirement: Requirement) -> str:
    versions = [each.version for each in requirement.specifier if each.operator == ">="]
    if len(versions) != 1:
        raise ValueError(f"{requirement} does not have one minimum")
    return versions[0]


def test_tools() -> list[str]:
    """What the unit tests need in addition (requirements/test.in)."""
    lines = (ROOT / "requirements" / "test.in").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _holds(marker: Marker, python: str) -> bool:
    return marker.evaluate({"python_version": python, "python_full_version": f"{python}.0"})
