"""The ledger: right in any order of arrival, exact or saying that it is not, bounded, and alive after a restart."""

from __future__ import annotations

import json
import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from zombiescope.recorder import ledger as module
from zombiescope.recorder.ledger import Creator, Ledger


def plain(path: str) -> str:
    return path.rstrip("0123456789") + "*"


def line(book: Ledger, path: str) -> module.Line:
    return next(one for one in book.lines if one.path == path)


def test_a_life_from_mkdir_to_release() -> None:
    book = Ledger(plain)
    book.mkdir(1, "/job-1", Creator("runc", 42, "docker.service"))
    assert (book.live, book.dying) == (1, 0)
    book.rmdir(1, "/job-1")
    assert (book.live, book.dying) == (0, 1)
    assert line(book, "/job-*").creator == Creator("runc", 42, "docker.service")
    book.release(1, "/job-1")
    assert (book.live, book.dying, book.exact) == (0, 0, True)


def test_a_zombie_older_than_the_ledger_is_named_when_it_goes() -> None:
    book = Ledger(plain)
    book.release(9, "/old-9")
    assert (book.dying, book.old_released, line(book, "/old-*").released) == (0, 1, 1)


def test_an_id_used_again_starts_anew() -> None:
    # GIVEN a kernel before 5.5 and a lost release
    book = Ledger(plain)
    book.mkdir(3, "/a-1", None)
    book.rmdir(3, "/a-1")
    book.mkdir(3, "/b-1", None)
    assert (line(book, "/a-*").dying, line(book, "/b-*").live, book.dying) == (0, 1, 0)


def test_a_renamed_cgroup_counts_for_its_new_path() -> None:
    book = Ledger(plain)
    book.mkdir(3, "/a-1", None)
    book.rename(3, "/b-1")
    book.rmdir(3, "/b-1")
    assert (line(book, "/a-*").dying, line(book, "/b-*").dying) == (0, 1)


def test_lost_records_leave_totals_exact_and_lines_flagged() -> None:
    book = Ledger(plain)
    book.mkdir(1, "/a-1", None)
    book.observe_counts(3, 2, 1, now_us=50)
    assert (book.created, book.removed, book.released, book.lost_records) == (3, 2, 1, 5)
    assert book.broken_since_us == 50
    book.observe_counts(3, 2, 1, now_us=60)
    assert book.broken_since_us == 50


@settings(max_examples=60)
@given(st.integers(0, 1 << 30))
def test_any_interleaving_of_the_rings_gives_the_same_lines(seed: int) -> None:
    """Each record goes to a random ring; rings keep their order; they are read in bursts, one after the other."""
    dice = random.Random(seed)
    rings: list[list[tuple[str, int]]] = [[], [], []]
    truth: Counter[str] = Counter()
    for key in range(1, dice.randrange(2, 60)):
        stages = ("mkdir", "rmdir", "release")[: dice.randrange(1, 4)]
        truth[stages[-1]] += 1
        for stage in stages:
            dice.choice(rings).append((stage, key))
    # Bursts may part a cgroup's records by one reading, never more: that is what a drain of all rings promises.
    book = Ledger(plain)
    order = list(range(3))
    dice.shuffle(order)
    for number in order:
        for stage, key in rings[number]:
            if stage == "mkdir":
                book.mkdir(key, f"/x-{key}", None)
            elif stage == "rmdir":
                book.rmdir(key, f"/x-{key}")
            else:
                book.release(key, f"/x-{key}")
    only = line(book, "/x-*")
    assert (only.created, only.removed, only.released) == (
        sum(truth.values()),
        truth["rmdir"] + truth["release"],
        truth["release"],
    )
    assert only.dying >= 0


def test_release_before_rmdir_leaves_no_ghost() -> None:
    book = Ledger(plain)
    book.mkdir(1, "/a-1", None)
    book.release(1, "/a-1")
    book.rmdir(1, "/a-1")
    assert (book.live, book.dying) == (0, 0)


def test_the_tail_is_summed_when_there_are_too_many_paths(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(module, "MAX_LINES", 8)
    book = Ledger(lambda path: path)
    for key in range(100):
        book.mkdir(key, f"/p{key}", None)
        book.rmdir(key, f"/p{key}")
        book.release(key, f"/p{key}")
    book.mkdir(1000, "/leak", None)
    book.rmdir(1000, "/leak")
    assert len([one for one in book.lines if one.path]) <= 8
    assert sum(one.created for one in book.lines) == 101
    assert line(book, "/leak").dying == 1


def test_ids_are_bounded_and_the_rest_counts_for_the_tail(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(module, "MAX_IDS", 10)
    book = Ledger(plain)
    for key in range(25):
        book.mkdir(key, f"/x-{key}", None)
    assert book.live == 25


def test_zombies_survive_a_restart_and_say_that_nobody_watched() -> None:
    book = Ledger(plain)
    for key in range(1, 5001):
        book.mkdir(key * 7, f"/leak-{key}", Creator("agent", 12, "ecs.service"))
        book.rmdir(key * 7, f"/leak-{key}")
    saved = json.loads(json.dumps(book.save()))
    again = Ledger(plain)
    again.restore(saved, now_us=99)
    assert (again.dying, again.exact, again.broken_since_us) == (5000, False, 99)
    assert line(again, "/leak-*").creator == Creator("agent", 12, "ecs.service")
    again.release(7, "/leak-1")
    assert again.dying == 4999
