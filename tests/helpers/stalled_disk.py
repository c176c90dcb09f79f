"""A disk of its own that can be made to hang: a small ext4 on a loop device, frozen. A write to it waits in the kernel,
uninterruptibly, as one to a volume that lost its server does."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StalledDisk:
    def __init__(self, place: Path) -> None:
        self.place = place

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Whatever writes to it inside the block waits for its end."""
        subprocess.run(["fsfreeze", "-f", str(self.place)], check=True)
        try:
            yield
        finally:
            subprocess.run(["fsfreeze", "-u", str(self.place)], check=True)


@contextmanager
def stalled_disk(directory: Path, megabytes: int = 64) -> Iterator[StalledDisk]:
    """Mounted below `directory`, gone afterwards."""
    image, place = directory / "disk.img", directory / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
    try:
        yield StalledDisk(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
        image.unlink()
