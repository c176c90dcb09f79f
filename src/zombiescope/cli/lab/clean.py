"""`zombiescope lab clean`: what a killed laboratory left on this machine, and the cached images."""

from __future__ import annotations

from typing import Annotated

import typer

from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, console, examples, print_document
from zombiescope.cli.quantities import human_bytes

EXAMPLES = examples(
    "lab clean                    # processes, cgroups, units, directories, cached images",
    "lab clean --keep-images",
)


def command(
    keep_images: Annotated[bool, typer.Option("--keep-images", help="Leave the images of `lab node` alone.")] = False,
    json_: Json = False,
) -> None:
    """Stop and remove everything the lab created, including cached images.

    A run cleans up after itself; this removes what is left after kill -9. It ends a run that is still in progress.
    """
    from zombiescope.lab import cache, leftovers

    found = leftovers.find()
    still = leftovers.remove(found)
    freed = 0 if keep_images else cache.clear()
    if json_:
        removed = {
            "processes": list(found.processes),
            "cgroups": [str(path) for path in found.cgroups],
            "directories": [str(path) for path in found.directories],
            "units": [path.name for path in found.units],
        }
        print_document("lab", {"cache": str(cache.directory()), "freed_bytes": freed, "removed": removed})
    else:
        console().print(f"removed {found}; {human_bytes(freed)} of images from {cache.directory()}")
    if still:
        raise Failure("; ".join(still), "run it as root, or reboot")
