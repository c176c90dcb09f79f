"""Where this node's runtimes keep their files, as far as it was learned from those that were found.

A runtime may be told to keep its state anywhere. The first container that is caught while its runtime works in the
bundle tells where; of the others the files are then found there, also when they are looked for too late for that."""

from __future__ import annotations

MAX_PLACES = 8


class Places:
    def __init__(self) -> None:
        self._bundles: dict[str, None] = {}
        self._docker: dict[str, None] = {}

    @property
    def bundles(self) -> list[str]:
        """Directories that hold a bundle for each container, by id."""
        return list(self._bundles)

    @property
    def docker(self) -> list[str]:
        """Directories that hold what Docker knows of each container, by id."""
        return list(self._docker)

    def found_bundle(self, path: str | None, container: str) -> None:
        _learn(self._bundles, path, container)

    def found_docker(self, path: str | None, container: str) -> None:
        _learn(self._docker, path, container)


def _learn(places: dict[str, None], path: str | None, container: str) -> None:
    if path is None or not path.startswith("/") or not path.endswith(f"/{container}"):
        return
    parent = path[: -len(container) - 1]
    if parent not in places:
        if len(places) >= MAX_PLACES:
            del places[next(iter(places))]
        places[parent] = None
