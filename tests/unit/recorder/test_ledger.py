"""The ledger: right in any order of arrival, exact or saying that it is not, bounded, and alive after a restart."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zombiescope.kernel.cgroup_path import normalise
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
        book.mkdir(key * 7, f"/leak-{key}", Creator("agent", 12, "ecs.service", None, 0, "/usr/bin/agent"))
        book.rmdir(key * 7, f"/leak-{key}")
    saved = json.loads(json.dumps(book.save()))
    again = Ledger(plain)
    again.restore(saved, now_us=99)
    assert (again.dying, again.exact, again.broken_since_us) == (5000, False, 99)
    assert line(again, "/leak-*").creator == Creator("agent", 12, "ecs.service", None, 0, "/usr/bin/agent")
    again.release(7, "/leak-1")
    assert again.dying == 4999


def test_four_thousand_zombies_of_a_loop_are_one_line_with_their_names() -> None:
    book = Ledger(normalise)
    for key in range(1, 4001):
        book.mkdir(key, f"/lab/z{key - 1}", None)
        book.rmdir(key, f"/lab/z{key - 1}")
    only = line(book, "/lab/z*")
    assert (only.dying, len([one for one in book.lines if one.path])) == (4000, 1)
    assert only.names.count == pytest.approx(4000, rel=0.03)


def test_one_id_made_again_and_again_is_one_name() -> None:
    book = Ledger(normalise)
    for key in range(1, 26):
        book.mkdir(key, f"/docker/{'dcf1' * 16}", None)
        book.rmdir(key, f"/docker/{'dcf1' * 16}")
    assert (line(book, "/docker/*").created, line(book, "/docker/*").names.count) == (25, 1)
    again = Ledger(normalise)
    again.restore(json.loads(json.dumps(book.save())), now_us=1)
    assert line(again, "/docker/*").names.count == 1


def test_a_neighbour_with_random_names_does_not_take_the_lines_of_others() -> None:
    """Names of letters only, which no rule can merge, each with a zombie that stays; in many directories."""
    dice, book = random.Random(7), Ledger(normalise)
    letters = "ghijklmnopqrstuvwxyz"
    for key in range(1, 9001):
        deep = "/".join("".join(dice.choices(letters, k=8)) for _ in range(1 + key % 3))
        book.mkdir(key, f"/evil/{deep}", Creator("evil", 66))
        book.rmdir(key, f"/evil/{deep}")
    book.mkdir(10_000, "/system.slice/agent.service/job-1", Creator("agent", 12))
    book.rmdir(10_000, "/system.slice/agent.service/job-1")
    # THEN whoever comes later still has a line, and what the neighbour left is all accounted for
    assert line(book, "/system.slice/agent.service/job-*").creator == Creator("agent", 12)
    assert sum(one.dying for one in book.lines if one.path in ("", "/evil/*") or one.path.startswith("/evil/")) == 9000
    assert len([one for one in book.lines if one.path.startswith("/evil/")]) <= module.MAX_LINES // 2
    # AND most of it is in a line that says where
    assert line(book, "/evil/*").dying > 2000


def test_directories_deeper_than_any_are_counted() -> None:
    book = Ledger(normalise)
    book.mkdir(1, "/a" * 2000, None)
    assert book.live == 1


def test_directories_of_before_are_known_by_their_path() -> None:
    """Before kernel 5.5 their inodes are no ids: 16 directories whose inodes are ids of restored zombies."""
    before = Ledger(plain)
    for key in range(1, 101):
        before.mkdir(key, f"/leak-{key}", None)
        before.rmdir(key, f"/leak-{key}")
    book = Ledger(plain)
    book.restore(json.loads(json.dumps(before.save())), now_us=1)
    for number in range(16):
        book.exists(f"/service{number}")
    assert (book.live, book.dying) == (16, 100)
    # WHEN one of them goes, under an id that nobody heard of
    book.rmdir(500, "/service3")
    assert (book.live, book.dying) == (15, 101)
    book.release(500, "/service3")
    assert (book.live, book.dying) == (15, 100)


def test_a_directory_that_is_made_during_the_walk_is_counted_once() -> None:
    book = Ledger(plain)
    # its record first
    book.mkdir(7, "/new-1", None)
    book.exists("/new-1")
    # the walk first
    book.exists("/new-2")
    book.mkdir(8, "/new-2", None)
    book.walked()
    assert (book.live, line(book, "/new-*").live) == (2, 2)
    book.rmdir(8, "/new-2")
    assert (book.live, book.dying) == (1, 1)


def test_an_id_whose_release_was_not_seen_counts_for_the_path_that_has_it_now() -> None:
    book = Ledger(plain)
    book.mkdir(3, "/a-1", None)
    book.rmdir(3, "/a-1")
    # GIVEN the recorder did not see that 3 was released and given to another
    book.rmdir(3, "/b-1")
    assert (line(book, "/a-*").dying, line(book, "/b-*").dying) == (0, 1)
