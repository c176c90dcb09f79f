"""containers/storage, which CRI-O and podman share: overlay-containers/containers.json names what each id is.

One document for all containers of a node; each has `id`, `names` and `metadata`, a JSON document as text with
`image-name`, `name`, `pod-name`. Over the limit of all files here it is refused. Absence: None.
"""

from __future__ import annotations

from typing import Any

from zombiescope.base import json as _json
from zombiescope.node.containers import files
from zombiescope.node.containers.description import Description

INDEXES = (
    "/var/lib/containers/storage/overlay-containers/containers.json",
    "/var/lib/containers/storage/vfs-containers/containers.json",
)


def parse(data: bytes, container: str) -> Description | None:
    """What the index says of one id."""
    try:
        listing = _json.loads(data)
    except ValueError:
        return None
    entries = listing if isinstance(listing, list) else []
    entry = next((one for one in entries if isinstance(one, dict) and one.get("id") == container), None)
    return None if entry is None else _described(entry)


def _described(entry: dict[str, Any]) -> Description:
    metadata = entry.get("metadata")
    more = files.document(metadata.encode("utf-8", "replace")) if isinstance(metadata, str) else {}
    names = entry.get("names")
    first = names[0] if isinstance(names, list) and names else None
    return Description(name=files.text(more.get("name")) or files.text(first), image=files.text(more.get("image-name")))


def of_container(container: str, root: str = "/") -> Description | None:
    for index in INDEXES:
        found = files.read(index, root)
        if found is not None and (described := parse(found.data, container)) is not None:
            return described
    return None
