"""What reaches the target is what was recorded, once, whatever happens in between."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.recordings import SECOND, START_US, Written, contents, write_recording, write_rollups

from zombiescope.base import safe_files
from zombiescope.store import compact, retention
from zombiescope.store.freeze import freeze
from zombiescope.store.reader import open_recording
from zombiescope.store.shipping import units
from zombiescope.store.shipping.policy import ShippingPolicy
from zombiescope.store.shipping.shipper import Round, Shipper
from zombiescope.store.shipping.target import DirectoryTarget, TargetError

DAY_US = 86_400 * SECOND
WINDOW = (START_US + 12 * SECOND, START_US + 33 * SECOND)


class Killed(BaseException):
    """Nothing in the program under test catches it, as nothing catches SIGKILL."""


class Faulty(DirectoryTarget):
    """A directory whose n-th call fails, or ends the process before or after it was done."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.calls = 0
        self.put_names: Counter[str] = Counter()
        self.fault: Callable[[int, str], BaseException | None] = lambda *_: None
        self.after = False
        self.away = False
        self.keeps = False

    def remove(self, name: str) -> bool:
        return not self.keeps and super().remove(name)

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        if self.away:
            raise TargetError("the target is away")
        self.calls += 1
        fault = self.fault(self.calls, name)
        if fault is not None and not self.after:
            raise fault
        super().put(name, pieces)
        self.put_names[name] += 1
        if fault is not None:
            raise fault


def _state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(exist_ok=True)
    return folder


def _ship(written: Written, tmp_path: Path, target: DirectoryTarget | None = None, **policy: Any) -> Round:
    chosen = ShippingPolicy(target=str(tmp_path / "there"), **policy)
    return Shipper(written.node_dir, _state(tmp_path), chosen, target or DirectoryTarget(tmp_path / "there")).round()


def _rows(place: Path, *window: int) -> dict[str, list[Any]]:
    with open_recording(place) as recording:
        assert recording.damage == []
        return contents(recording, *window)


def _data(names: Counter[str]) -> Counter[str]:
    return Counter({name: count for name, count in names.items() if name.endswith((".seg", ".parquet"))})


@pytest.fixture
def written(tmp_path: Path) -> Written:
    made = write_recording(tmp_path / "here", segment_s=10)
    write_rollups(made.node_dir, START_US, days=2)
    freeze(made.node_dir, *WINDOW, "incident 1")
    return made


# --- what is sent ----------------------------------------------------------------------------------------------------


def test_a_frozen_window_reads_at_the_target_as_it_reads_here(written: Written, tmp_path: Path) -> None:
    done = _ship(written, tmp_path)
    assert (done.units, done.waiting) == (5, 0)  # three segments, two days of rollups
    assert _rows(tmp_path / "there", *WINDOW) == _rows(tmp_path / "here", *WINDOW)
    assert sorted(path.name for path in (tmp_path / "there/node=lab/log").iterdir()) == [
        path.name for path in written.segments[1:4]
    ]
    assert json.loads((tmp_path / "there/node=lab/node.json").read_bytes())["node"] == "lab"


def test_without_a_frozen_window_nothing_leaves(tmp_path: Path) -> None:
    made = write_recording(tmp_path / "here", segment_s=10)
    assert _ship(made, tmp_path).units == 0
    assert [path.name for path in (tmp_path / "there/node=lab").iterdir()] == ["node.json"]


def test_rollups_leave_a_healthy_node_too(tmp_path: Path) -> None:
    """A fleet that hears of sick nodes only has nobody to compare them with."""
    made = write_recording(tmp_path / "here", segment_s=10)
    write_rollups(made.node_dir, START_US, days=2)
    assert _ship(made, tmp_path).units == 2
    assert _ship(made, tmp_path).units == 0
    assert len(list((tmp_path / "there/node=lab/rollup").iterdir())) == 2


def test_an_ordinary_segment_leaves_a_healthy_node_once_a_day(tmp_path: Path) -> None:
    made = write_recording(tmp_path / "here", segment_s=10)
    evening_us = START_US // DAY_US * DAY_US + DAY_US - SECOND
    policy = ShippingPolicy(target=str(tmp_path / "there"), sample=1.0)
    target = Faulty(tmp_path / "there")
    for day in (0, 0, 1):
        clock = partial(int, evening_us + day * DAY_US)
        Shipper(made.node_dir, _state(tmp_path), policy, target, now_us=clock).round()
        segments = [name for name in target.put_names if "/log/" in name]
        assert segments == [f"node=lab/log/{made.segments[-1].name}"], "the next day there was nothing new"
    compact.compact(made.node_dir)
    Shipper(made.node_dir, _state(tmp_path), policy, target, now_us=lambda: evening_us + 2 * DAY_US).round()
    assert not any(name.endswith(".parquet") for name in target.put_names), "its part does not follow it"
    assert _rows(tmp_path / "there")["samples"] != []


def test_one_node_in_ten_is_drawn_at_any_hour() -> None:
    midnight_us = START_US // DAY_US * DAY_US
    names = [f"node=n{number}" for number in range(2000)]
    by_hour = [sum(units.ordinary_due(name, midnight_us + hour * 3600 * SECOND, 0.1, "") is not None for name in names)
               for hour in (0, 12, 23)]  # fmt: skip
    assert by_hour[0] < by_hour[1] < by_hour[2]
    assert 150 < by_hour[2] < 250
    assert units.ordinary_due(names[0], midnight_us, 0.0, "") is None


def test_everything_is_sent_when_asked_and_nothing_twice(written: Written, tmp_path: Path) -> None:
    target = Faulty(tmp_path / "there")
    assert _ship(written, tmp_path, target).units == 5
    assert _ship(written, tmp_path, target, what="everything").units == 3
    assert _ship(written, tmp_path, target, what="everything").units == 0
    assert set(_data(target.put_names).values()) == {1}
    assert _rows(tmp_path / "there") == _rows(tmp_path / "here")


def test_what_belongs_to_an_incident_goes_first_and_the_newest_of_it(written: Written, tmp_path: Path) -> None:
    target = Faulty(tmp_path / "there")
    _ship(written, tmp_path, target, what="everything")
    order = [name.rpartition("/")[2] for name in target.put_names if "/log/" in name]
    names = [path.name for path in written.segments]
    assert order == [names[3], names[2], names[1], names[0], names[4], names[5]]


def test_a_part_takes_the_place_of_its_segments(written: Written, tmp_path: Path) -> None:
    target = Faulty(tmp_path / "there")
    _ship(written, tmp_path, target, what="everything")
    compact.compact(written.node_dir)
    assert _ship(written, tmp_path, target, what="everything").units == 1
    assert list((tmp_path / "there/node=lab/log").iterdir()) == []
    assert not list((tmp_path / "there/node=lab/shipped").glob("log~*"))
    assert _rows(tmp_path / "there") == _rows(tmp_path / "here")


def test_a_target_that_lets_nobody_delete_shows_no_row_twice(written: Written, tmp_path: Path) -> None:
    target = Faulty(tmp_path / "there")
    target.keeps = True
    _ship(written, tmp_path, target, what="everything")
    compact.compact(written.node_dir)
    _ship(written, tmp_path, target, what="everything")
    assert len(list((tmp_path / "there/node=lab/log").iterdir())) == 6
    assert _rows(tmp_path / "there") == _rows(tmp_path / "here")


def test_the_segment_that_grows_is_sent_as_far_as_it_goes_and_again_when_it_has_grown(tmp_path: Path) -> None:
    made = write_recording(tmp_path / "here", segment_s=20)
    newest = made.segments[-1]
    whole = newest.read_bytes()
    newest.write_bytes(whole[: len(whole) // 2])
    freeze(made.node_dir, START_US + 50 * SECOND, START_US + 70 * SECOND, "incident 1")
    target = Faulty(tmp_path / "there")
    with open(made.node_dir / "lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert [_ship(made, tmp_path, target).units for _ in range(2)] == [1, 0]
        assert (tmp_path / "there/node=lab/log" / newest.name).read_bytes() == whole[: len(whole) // 2]
        with open(newest, "ab") as file:
            file.write(whole[len(whole) // 2 :])
        assert [_ship(made, tmp_path, target).units for _ in range(2)] == [1, 0]
    assert (tmp_path / "there/node=lab/log" / newest.name).read_bytes() == whole


def test_receipts_hold_the_checksums_of_what_is_there(written: Written, tmp_path: Path) -> None:
    import hashlib

    _ship(written, tmp_path, what="everything", verify="read")
    receipts = list((tmp_path / "there/node=lab/shipped").iterdir())
    assert len(receipts) == 8
    for receipt in receipts:
        for file in json.loads(receipt.read_bytes())["files"]:
            data = (tmp_path / "there/node=lab" / file["name"]).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["sha256"])


@pytest.mark.parametrize("verify", ["size", "read"])
def test_what_arrives_damaged_is_not_taken_for_sent(written: Written, tmp_path: Path, verify: str) -> None:
    class Damaging(DirectoryTarget):
        def put(self, name: str, pieces: Iterable[bytes]) -> None:
            data = b"".join(pieces)
            broken = data[:-1] if verify == "size" else data[:-1] + bytes([data[-1] ^ 1])
            super().put(name, [broken if name.endswith(".seg") else data])

    with pytest.raises(TargetError, match="it is sent again"):
        _ship(written, tmp_path, Damaging(tmp_path / "there"), verify=verify)
    assert _ship(written, tmp_path, verify=verify).units == 5
    assert _rows(tmp_path / "there", *WINDOW) == _rows(tmp_path / "here", *WINDOW)


# --- interruptions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_step_nothing_is_lost_and_nothing_there_is_sent_again(
    written: Written, tmp_path: Path, after: bool
) -> None:
    compact.compact(written.node_dir, [path.name for path in written.segments[:3]])
    target = Faulty(tmp_path / "there")
    target.after = after
    rounds, steps = 0, 0
    while True:
        rounds += 1
        target.calls = 0
        # Each process lives for one step longer than the one before it.
        target.fault = lambda call, _: Killed() if call == rounds else None  # noqa: B023
        try:
            _ship(written, tmp_path, target, what="everything")
        except Killed:
            steps += 1
            continue
        break
    assert steps > 5
    assert _rows(tmp_path / "there") == _rows(tmp_path / "here")
    receipted = [name for name, count in target.put_names.items() if "/shipped/" in name and count > 1]
    assert receipted == []


def test_books_that_are_lost_cost_questions_and_no_data(written: Written, tmp_path: Path) -> None:
    target = Faulty(tmp_path / "there")
    _ship(written, tmp_path, target, what="everything")
    for damage in (None, b"", b"{", b'{"sent": 3}', b'{"no": 1}'):
        ledger = _state(tmp_path) / "ledger.json"
        ledger.unlink() if damage is None else ledger.write_bytes(damage)
        done = _ship(written, tmp_path, target, what="everything")
        assert (done.known, done.bytes) == (8, 0)
    assert set(_data(target.put_names).values()) == {1}


def test_a_target_that_comes_back_gets_what_retention_has_deleted_meanwhile(written: Written, tmp_path: Path) -> None:
    before = _rows(tmp_path / "here")
    target = Faulty(tmp_path / "there")
    target.away = True
    with pytest.raises(TargetError):
        _ship(written, tmp_path, target, what="everything")
    retention.enforce(written.node_dir, 1, 0, START_US + 3600 * SECOND, frozen_ratio=0)
    assert list((written.node_dir / "log").iterdir()) == []
    target.away = False
    assert _ship(written, tmp_path, target, what="everything").units >= 6
    assert _rows(tmp_path / "there")["samples"] == before["samples"]


def test_the_spool_is_bounded_and_says_what_it_lost(written: Written, tmp_path: Path) -> None:
    target = Faulty(tmp_path / "there")
    target.away = True
    with pytest.raises(TargetError):
        _ship(written, tmp_path, target, what="everything")
    sizes = [path.stat().st_size for path in written.segments]
    retention.enforce(written.node_dir, 1, 0, START_US + 3600 * SECOND, frozen_ratio=0)
    target.away = False
    done = _ship(written, tmp_path, target, what="everything", spool_bytes=sum(sizes[1:4]) + 10)
    assert done.dropped_units == 3
    assert done.dropped_bytes == sizes[0] + sizes[4] + sizes[5]  # what belongs to no incident went first
    assert any("was lost: the spool is full" in said for said in done.notes)
    assert sorted(path.name for path in (tmp_path / "there/node=lab/log").iterdir()) == [
        path.name for path in written.segments[1:4]
    ]


def test_without_room_for_a_link_it_is_sent_from_the_recording(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    done = _ship(written, tmp_path)
    assert done.units == 5
    assert "No space left" in done.notes[0]
    assert _rows(tmp_path / "there", *WINDOW) == _rows(tmp_path / "here", *WINDOW)


def test_without_room_for_the_ledger_nothing_is_sent_twice(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = safe_files.replace

    def full(path: Path, data: bytes, *, sync: bool = False) -> None:
        if path.name == "ledger.json":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, data, sync=sync)

    monkeypatch.setattr(safe_files, "replace", full)
    target = Faulty(tmp_path / "there")
    done = _ship(written, tmp_path, target)
    assert any("the ledger cannot be written (No space left on device)" in said for said in done.notes)
    assert _ship(written, tmp_path, target).known == 5
    assert set(_data(target.put_names).values()) == {1}


# --- policy ----------------------------------------------------------------------------------------------------------


def test_with_redaction_no_name_leaves_and_words_stay_the_same(tmp_path: Path) -> None:
    made = write_recording(tmp_path / "here", segment_s=20)
    compact.compact(made.node_dir, [made.segments[0].name])
    _ship(made, tmp_path, what="everything", redact=True)
    (node,) = (tmp_path / "there").iterdir()
    assert node.name.startswith("node=node-")
    assert _ship(made, tmp_path, what="everything", redact=True).units == 0
    with open_recording(tmp_path / "there") as there, open_recording(tmp_path / "here") as here:
        assert there.table("samples").num_rows == here.table("samples").num_rows
        words = set(filter(None, there.table("tasks").column("cmdline").to_pylist()))
        assert words
        assert all(word.startswith("command-") for word in words)
        assert len(words) == len(set(filter(None, here.table("tasks").column("cmdline").to_pylist())))
    everything = b"".join(path.read_bytes() for path in (tmp_path / "there").rglob("*") if path.is_file())
    for secret in (b"/usr/bin/", b"node=lab", b'"lab"'):
        assert secret not in everything
    assert not list((tmp_path / "there").rglob("*.seg"))


def test_what_is_older_than_the_policy_keeps_is_deleted_there(written: Written, tmp_path: Path) -> None:
    _ship(written, tmp_path, what="everything")
    done = _ship(written, tmp_path, what="everything", keep_days=1)
    assert done.deleted == 8
    assert not [path for path in (tmp_path / "there").rglob("*") if path.is_file() and path.suffix == ".seg"]
    assert _ship(written, tmp_path, what="everything", keep_days=1).units == 0  # and not sent again


def test_a_receipt_that_somebody_else_wrote_deletes_nothing_of_his_choice(written: Written, tmp_path: Path) -> None:
    _ship(written, tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("x")
    receipt = tmp_path / "there/node=lab/shipped/log~0000000000000001.seg.json"
    receipt.write_text(json.dumps({"files": [{"name": "../../victim", "bytes": 1, "sha256": ""}]}))
    _ship(written, tmp_path, keep_days=1)
    assert victim.exists()


def test_links_and_pipes_in_a_recording_do_not_leave_the_node(written: Written, tmp_path: Path) -> None:
    """A recording may be another user's, or unpacked from what somebody sent."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"root:$6$")
    node_dir = written.node_dir
    at_us = WINDOW[0] + 1
    (node_dir / "log" / f"{at_us:016d}.seg").symlink_to(secret)
    (node_dir / "incidents.json").symlink_to(secret)
    os.mkfifo(node_dir / "log" / f"{at_us + 1:016d}.seg")
    os.mkfifo(node_dir / "frozen" / "x.json")
    target = tmp_path / "target"
    _ship(written, tmp_path, DirectoryTarget(target), what="everything")
    sent = [path for path in target.rglob("*") if path.is_file()]
    assert sent
    assert not [path for path in sent if b"root:$6$" in path.read_bytes()]


@pytest.mark.parametrize("level", ["node", "folder", "file"])
def test_links_that_another_node_left_at_the_target_are_not_followed(
    written: Written, tmp_path: Path, level: str
) -> None:
    target, elsewhere = tmp_path / "target", tmp_path / "elsewhere"
    for place in (target, elsewhere, elsewhere / "log"):
        place.mkdir()
    node = target / written.node_dir.name
    if level == "node":
        node.symlink_to(elsewhere)
    else:
        node.mkdir()
        (node / "node.json").symlink_to(elsewhere / "node.json")
        if level == "folder":
            (node / "log").symlink_to(elsewhere / "log")
    if level == "file":
        _ship(written, tmp_path, DirectoryTarget(target))
        assert (node / "node.json").is_file()
        assert not (node / "node.json").is_symlink()
    else:
        with pytest.raises(TargetError, match="cannot be written"):
            _ship(written, tmp_path, DirectoryTarget(target))
    assert not [path for path in elsewhere.rglob("*") if path.is_file()]
