"""A tree that must not be too large loses its narrowest branches, says so, and stays a tree."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.query.test_flame import SAMPLED, counts, known, paths

from zombiescope.query import flame, svg
from zombiescope.query.flame import Tree
from zombiescope.query.stacks import UNKNOWN, Function, Stacks


def large(names: int = 40, stacks: int = 6000, differs: bool = False, letters: int = 30) -> Tree:
    rng = np.random.default_rng(3)
    functions = (UNKNOWN, *(Function(f"{'ü' * letters}<{number}>", "/usr/lib/x.so", "user") for number in range(names)))
    flat = rng.integers(1, names + 1, stacks * 12).astype(np.int32)
    starts = np.arange(stacks) * 12
    seen = rng.integers(1, 1000, stacks)
    base = rng.integers(0, 1000, stacks) if differs else None
    return flame.fold(Stacks(functions, flat, starts, starts + 12), seen, base, below_ratio=0)


def test_what_fits_is_left_as_it_is() -> None:
    tree = flame.fold(known("main;a", "main;b"), counts(3, 5), below_ratio=0)
    assert flame.prune(tree, np.ones(4), 4) is tree


def test_the_narrowest_go_first_and_are_counted() -> None:
    tree = flame.fold(known("main;a", "main;b;c", "main;d"), counts(90, 7, 3), below_ratio=0)
    small = flame.prune(tree, np.ones(6), 5)
    assert paths(small) == {
        "all": (100, 0), "main": (100, 0), "main;a": (90, 90), "main;b": (7, 0), "main;b;c": (7, 7),
    }  # fmt: skip
    assert (small.pruned.branches, small.pruned.samples, small.pruned.below_ratio) == (1, 3, 0.07)
    assert "1 branches under 7.00% are not drawn; 3.0% of samples end in them" in svg.says_pruned(small)
    assert small.leaf.tolist() == [2, 4, 1, -1], "a stack that was cut ends at its caller"


def test_nodes_of_one_width_do_not_all_go() -> None:
    tree = flame.fold(known("a;b", "c;d", "e;f"), counts(5, 5, 5), below_ratio=0)
    small = flame.prune(tree, np.ones(7), 5)
    assert set(paths(small)) == {"all", "a", "c", "e", "a;b"}
    assert (small.pruned.branches, small.pruned.samples) == (2, 10)


def test_the_root_stays_whatever_it_costs() -> None:
    tree = flame.fold(known("a;b"), counts(5), below_ratio=0)
    assert paths(flame.prune(tree, np.full(3, 100.0), 1)) == {"all": (5, 0)}


@given(SAMPLED, st.integers(1, 30), st.booleans())
def test_no_sample_is_lost_or_counted_twice(sampled: list[tuple[str, int, int]], nodes: int, differs: bool) -> None:
    stacks = known(*(stack for stack, _, _ in sampled))
    now, before = counts(*(count for _, count, _ in sampled)), counts(*(count for *_, count in sampled))
    tree = flame.fold(stacks, now, before if differs else None, below_ratio=0.02)
    small = flame.prune(tree, np.ones(len(tree.value)), nodes)
    assert len(small.value) <= max(nodes, 1)
    assert small.total == tree.total
    assert small.self_value.sum() + small.pruned.samples == small.total
    whole = paths(tree)
    assert all(whole[path] == row for path, row in paths(small).items())
    assert (small.leaf >= 0).tolist() == (tree.leaf >= 0).tolist()
    children = np.bincount(small.parent[1:], small.value[1:], len(small.value))
    assert (small.value - small.self_value >= children).all()


def test_json_is_no_longer_than_was_promised() -> None:
    for differs in (False, True):
        tree = large(differs=differs)
        assert len(json.dumps(flame.nested(tree))) > flame.FILE_BYTES
        small = flame.prune(tree, flame.json_bytes(tree), 300_000)
        length = len(json.dumps(flame.nested(small)))
        assert 200_000 < length <= 300_000


def test_svg_is_no_longer_than_was_promised() -> None:
    for differs in (False, True):
        tree = large(differs=differs)
        small = flame.prune(tree, svg.frame_bytes(tree), 300_000)
        length = len(svg.flamegraph(small, "lab").encode())
        assert 100_000 < length <= 305_000
