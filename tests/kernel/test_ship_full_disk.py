"""A disk without room for a byte: what is recorded leaves it nevertheless, and nothing is sent twice for that."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.helpers.recordings import SECOND, START_US, contents, write_recording

from zombiescope.store.freeze import freeze
from zombiescope.store.reader import open_recording
from zombiescope.store.shipping.policy import ShippingPolicy
from zombiescope.store.shipping.shipper import Round, Shipper
from zombiescope.store.shipping.target import DirectoryTarget

pytestmark = [pytest.mark.kernel, pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tmpfs takes root")]


class Counting(DirectoryTarget):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.taken: Counter[str] = Counter()

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        super().put(name, pieces)
        self.taken[name] += 1


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=64", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def _fill(place: Path) -> None:
    """Until nothing more can be written or made."""
    for number in range(200):
        try:
            with open(place / f"fill-{number}", "wb", buffering=0) as file:
                while file.write(b"x" * 4096):
                    pass
        except OSError:
            continue


def _ship(node_dir: Path, state: Path, target: Counting) -> Round:
    policy = ShippingPolicy(target="there", what="everything")
    return Shipper(node_dir, state, policy, target).round()


def test_a_full_disk_is_emptied_and_nothing_is_sent_twice(small: Path, tmp_path: Path) -> None:
    made = write_recording(small / "here", segment_s=10)
    freeze(made.node_dir, START_US + 12 * SECOND, START_US + 33 * SECOND, "incident 1")
    state = small / "state"
    (state / "spool").mkdir(parents=True)
    _fill(small)
    target = Counting(tmp_path / "there")
    first = _ship(made.node_dir, state, target)
    assert first.units == 6
    assert any("spool has no room" in said for said in first.notes)
    assert any("ledger cannot be written (No space left on device)" in said for said in first.notes)
    assert not list(state.rglob("*.tmp"))
    second = _ship(made.node_dir, state, target)  # a new process, without books
    assert (second.known, second.bytes) == (6, 0)
    for path in small.glob("fill-*"):
        path.unlink()
    assert _ship(made.node_dir, state, target).known == 6
    assert _ship(made.node_dir, state, target).units == 0  # now the books say it
    assert {count for name, count in target.taken.items() if name.endswith(".seg")} == {1}
    with open_recording(tmp_path / "there") as there, open_recording(small / "here") as here:
        assert contents(there) == contents(here)
