"""Which recordings there are to look at: those that were named, and the founding case, which is built when it is
asked for."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zombiescope.store import locate
from zombiescope.web.follower import Followers
from zombiescope.web.held_recording import HeldRecording
from zombiescope.web.refusal import Refusal

if TYPE_CHECKING:
    from zombiescope.web.fleet import FleetRoot  # which needs DuckDB, an optional part

KEY = "fleet:"
"""What stands before the name of a node of the fleet in the key of its recording."""
HERE = "here"
FOUNDING_CASE = "founding-case"
_REPLAY = "a replay of the founding case, rebuilt from its published figures; not this machine"


@dataclass(frozen=True, slots=True)
class Place:
    """A directory or a pack, and the node in it that is meant, if one is."""

    path: Path
    node: str | None = None


class Recordings:
    def __init__(self, places: Sequence[Place], fleet: FleetRoot | None = None) -> None:
        self.fleet = fleet
        self._held = {one.key: one for one in _named(places)}
        self._founding = _FoundingCase()
        self.followers = Followers()

    def named(self, key: str | None) -> HeldRecording:
        """Raises Refusal."""
        if key is None and (self._held or self.fleet is None):
            return next(iter(self._held.values()))
        if self.fleet is not None and (key is None or key.startswith(KEY)):
            return self.fleet.named(self.fleet.first() if key is None else key)
        if key == FOUNDING_CASE:
            return self._founding.held()
        if key not in self._held:
            raise Refusal(404, f"there is no recording {key!r}", "GET /api/v1/recordings lists them")
        return self._held[key]

    def document(self) -> dict[str, Any]:
        found = [_described(one) for one in self._held.values()]
        return {"recordings": [*found, self._founding.described()], "fleet": self.fleet is not None}

    def fleet_document(self) -> dict[str, Any] | None:
        """The state and the report of the fleet; None where none is served."""
        return None if self.fleet is None else self.fleet.document()

    def close(self) -> None:
        for one in self._held.values():
            one.close()
        if self.fleet is not None:
            self.fleet.close()
        self._founding.close()


def _named(places: Sequence[Place]) -> Iterator[HeldRecording]:
    """The first is `here`; others have the name of their node as their key."""
    taken: set[str] = set()
    for place in places:
        nodes = locate.nodes_in(place.path) if place.node is None and place.path.is_dir() else []
        for node in nodes if len(nodes) > 1 else [place.node]:
            stem = HERE if not taken else node or place.path.stem
            key = next(key for key in (stem, *(f"{stem}-{number}" for number in range(2, 10_000))) if key not in taken)
            taken.add(key)
            yield HeldRecording(key, place.path, node)


def _described(one: HeldRecording) -> dict[str, Any]:
    known: dict[str, Any] = {"key": one.key, "title": None, "node": one.node, "from": None, "to": None}
    known |= {"live": one.live, "note": one.note, "place": str(one.place), "gone": one.gone}
    try:
        with one.reading() as recording:
            times = {"from": recording.start_us / 1e6, "to": recording.end_us / 1e6}
            return known | {"title": recording.name, "node": recording.name} | times
    except Refusal as refusal:
        return known | {"title": one.node or one.key, "note": refusal.what}


class _FoundingCase:
    """Built once, in a temporary directory that goes with the server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._place: Path | None = None
        self._held: HeldRecording | None = None

    def held(self) -> HeldRecording:
        with self._lock:
            if self._held is None:
                from zombiescope.imports.raw_case import rebuild_founding_case

                self._place = Path(tempfile.mkdtemp(prefix="zombiescope-case-"))
                try:
                    rebuild_founding_case(self._place / "recording")
                except OSError as error:
                    self._remove()
                    raise Refusal(503, f"the founding case could not be built: {error}", "free some disk") from error
                self._held = HeldRecording(FOUNDING_CASE, self._place / "recording", note=_REPLAY)
            return self._held

    def described(self) -> dict[str, Any]:
        if self._held is not None:
            return _described(self._held) | {"title": "the founding case", "place": None}
        return {
            "key": FOUNDING_CASE,
            "title": "the founding case",
            "node": None,
            "from": None,
            "to": None,
            "live": False,
            "note": _REPLAY,
            "place": None,
            "gone": False,
        }

    def _remove(self) -> None:
        if self._place is not None:
            shutil.rmtree(self._place, ignore_errors=True)
            self._place = None

    def close(self) -> None:
        if self._held is not None:
            self._held.close()
        self._remove()
