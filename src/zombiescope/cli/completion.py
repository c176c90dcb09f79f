"""What the Tab key offers: values that are known, and names out of the recording that is meant.

A shell asks in a process of its own, with what was typed so far, and a person waits for it: names are read from
the folder, incidents.json and the tasks of the newest part, and whatever goes wrong offers nothing. `DIR` is taken from
the words that were typed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from zombiescope.base.severity import SEVERITIES
from zombiescope.store import locate

Offer = Callable[[str], list[str]]
_MOST = 200
_PARTS = 8


def severities(incomplete: str) -> list[str]:
    return _starting(SEVERITIES, incomplete)


def kinds(incomplete: str) -> list[str]:
    from zombiescope.query.events import known_kinds as known

    return _starting(known(), incomplete)


def scenarios(incomplete: str) -> list[str]:
    from zombiescope.lab.scenario import every

    return _starting((one.id for one in every()), incomplete)


def nodes(incomplete: str) -> list[str]:
    place = _place()
    return _starting(locate.nodes_in(place), incomplete) if place.is_dir() else []


def incidents(incomplete: str) -> list[str]:
    from zombiescope.store import incident_file

    place = _place()
    found = [entry for node in locate.nodes_in(place) for entry in incident_file.read(place / f"node={node}")]
    return _starting((str(entry.get("id")) for entry in reversed(found)), incomplete)


def of_tasks(column: str) -> Offer:
    """The values of a column of the tasks: unit, comm, container, pod."""

    def offer(incomplete: str) -> list[str]:
        try:
            return _starting(_in_tasks(column), incomplete)
        except Exception:  # noqa: BLE001  a Tab key that prints an error is worse than one that offers nothing
            return []

    return offer


OFFERS: dict[str, Offer] = {
    "kind": kinds,
    "incident": incidents,
    "comm": of_tasks("comm"),
    "unit": of_tasks("unit"),
    "container": of_tasks("container"),
    "pod": of_tasks("pod"),
}
"""By the field of a question."""


def _in_tasks(column: str) -> set[str]:
    """Of the newest parts that know any: names that matter are in there, and hours of them take too long."""
    from zombiescope.store.reader import open_recording

    found: set[str] = set()
    with open_recording(_place()) as recording:
        for part in reversed(recording.parts[-_PARTS:]):
            for rows in recording.batches("tasks", columns=[column], parts=[part]):
                found.update(filter(None, rows.column(column).to_pylist()))
            if len(found) > 1:
                break
    return found


def offered(field: str) -> Offer | None:
    """What a question's field is completed with, while a shell asks; preparing it takes a while for --help."""
    return OFFERS.get(field) if "_ZOMBIESCOPE_COMPLETE" in os.environ else None


def _place() -> Path:
    """The first word that is there on the disk: an option that has no value yet keeps typer from reading the rest."""
    words = (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or "").split()
    return next((path for path in map(Path, words[2:]) if path.exists()), None) or locate.default_dir()


def _starting(values: Iterable[str | None], incomplete: str) -> list[str]:
    return sorted({value for value in _texts(values) if value.startswith(incomplete)})[:_MOST]


def _texts(values: Iterable[str | None]) -> Iterator[str]:
    """Without what a shell would take apart: somebody else chose these names."""
    for value in values:
        if value and value.isprintable() and not set(value) & set(" \t;&|<>$`\"'\\(){}*?!"):
            yield value
