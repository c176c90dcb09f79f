"""What hurt: one file per kind of symptom, each with `find(facts) -> Iterator[Symptom]`.

A file in this folder is a detector; nothing has to be registered. Detectors do not know causes, and none of them looks
at averages over cores: one core, one task or one group is enough (measured: a hog that migrates shows as 27 % and 78 %
on two cores, a storm of short processes as 61 % and 49 %).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Symptom


def find(facts: Facts) -> list[Symptom]:
    """Every symptom in the window, in the order of time."""
    found = [symptom for name in names() for symptom in _detector(name, facts)]
    return sorted(found, key=lambda symptom: (symptom.from_us, symptom.kind, symptom.cpu or -1, symptom.group or ""))


def names() -> list[str]:
    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def _detector(name: str, facts: Facts) -> Iterator[Symptom]:
    yield from import_module(f"{__name__}.{name}").find(facts)
