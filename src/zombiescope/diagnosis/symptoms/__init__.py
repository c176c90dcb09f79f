"""The kinds of symptoms, one file each; a file that is here is used, and nothing has to be registered.

Detectors do not know causes, and none of them looks at averages over cores: one core, one task or one group is enough
(measured: a hog that migrates shows as 27% and 78% on two cores, a storm of short processes as 61% and 49%).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.store import steps


@cache
def every() -> tuple[Detector, ...]:
    """All detectors, by kind."""
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__) if found.name[0] != "_"]
    return tuple(sorted((module.DETECTOR for module in modules), key=lambda detector: detector.kind))


def by_kind(kind: str) -> Detector:
    """Raises KeyError."""
    return {detector.kind: detector for detector in every()}[kind]


def find(facts: Facts) -> list[Symptom]:
    """Every symptom in the window, in the order of time; not what was over in the part of the first second that was not
    asked for."""
    found = []
    for detector in every():
        steps.step(f"symptom {detector.kind}")
        found += [symptom for symptom in detector.find(facts) if symptom.to_us >= facts.asked_us]
    return sorted(found, key=lambda symptom: (symptom.from_us, symptom.kind, symptom.cpu or -1, symptom.group or ""))
