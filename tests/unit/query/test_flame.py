"""The tree of stacks: its sums, its inversion, its difference, and what is left out of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.made import Sample, opened

from zombiescope.documents import flamegraph
from zombiescope.query import flame, terminal
from zombiescope.query.flame import Tree
from zombiescope.query.selection import Selection
from zombiescope.query.stacks import UNKNOWN, Function, Stacks
from zombiescope.questions.views import FlamegraphQuestion


def paths(tree: Tree) -> dict[str, tuple[int, int]]:
    """Each node as its path, with value and self."""
    named: list[str] = []
    for node, parent in enumerate(tree.parent.tolist()):
        named.append(tree.name(node).name if parent < 1 else f"{named[parent]};{tree.name(node).name}")
    return {name: (int(value), int(own)) for name, value, own in zip(named, tree.value, tree.self_value, strict=True)}


def known(*stacks: str) -> Stacks:
    names = sorted({name for stack in stacks for name in stack.split(";")})
    functions = (
        UNKNOWN,
        *(Function(name.removeprefix("[k]"), None, "kernel" if "[k]" in name else "user") for name in names),
    )
    flat, starts, ends = [0], [], []
    for stack in stacks:
        starts.append(len(flat))
        flat += [1 + names.index(name) for name in stack.split(";")]
        ends.append(len(flat))
    return Stacks(functions, np.array(flat), np.array([*starts, 0]), np.array([*ends, 1]))


def counts(*numbers: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([*numbers, 0], np.int64)


def test_stacks_fold_into_a_tree() -> None:
    tree = flame.fold(known("main;a", "main;a;b", "main;c"), counts(3, 2, 5), below_ratio=0)
    assert paths(tree) == {"all": (10, 0), "main": (10, 0), "main;a": (5, 3), "main;a;b": (2, 2), "main;c": (5, 5)}
    assert flame.nested(tree)["children"][0]["children"][0] == {
        "name": "a", "module": None, "kind": "user", "value": 5, "self": 3,
        "children": [{"name": "b", "module": None, "kind": "user", "value": 2, "self": 2, "children": []}],
    }  # fmt: skip


def test_the_inverted_tree_starts_where_the_time_went() -> None:
    tree = flame.fold(known("main;a", "main;b;a"), counts(3, 2), invert=True, below_ratio=0)
    assert paths(tree) == {"all": (5, 0), "a": (5, 0), "a;b": (2, 0), "a;b;main": (2, 2), "a;main": (3, 3)}


def test_the_inverted_tree_charges_skid_to_the_caller() -> None:
    tree = flame.fold(known("[k]read;[k]_raw_spin_unlock_irqrestore", "[k]read"), counts(3, 1), invert=True)
    assert paths(tree) == {"all": (4, 0), "read": (4, 4)}


def test_recursion_is_depth_and_not_a_loop() -> None:
    assert paths(flame.fold(known("f;f;f"), counts(2), below_ratio=0))["f;f;f"] == (2, 2)


def test_a_stack_that_was_made_to_hurt_is_written_and_read_back_to_a_depth(tmp_path: Path) -> None:
    """Nested JSON is written and read by recursion."""
    deep = ";".join(f"f{number}" for number in range(3_000))
    with opened(tmp_path, Sample(0, deep), Sample(1, "f0;other")) as recording:
        document = flamegraph.answer(recording, FlamegraphQuestion()).document()
    read = json.loads(json.dumps(document))
    assert read["cut_at_depth"] == flame.MAX_NESTED
    node, levels = read["root"], 0
    while node["children"]:
        node, levels = max(node["children"], key=lambda child: child["value"]), levels + 1
    assert levels == flame.MAX_NESTED


@pytest.mark.timeout(60)
def test_a_stack_of_any_depth_is_drawn_to_a_depth() -> None:
    """Each level once: looking for its nodes among all of them took minutes."""
    tree = flame.fold(known(";".join("f" * 100_000), "g;h"), counts(3, 1), below_ratio=0)
    lefts = flame.lefts(tree)
    assert lefts[-1] == 0
    assert max(lefts) == 3
    lines = terminal.plain(terminal.flamegraph(tree, 80)).splitlines()
    assert len(lines) == flame.MAX_NESTED + 2
    assert lines[-1] == "... and 99,600 levels below"
    assert len(flame.prune(tree, np.ones(len(tree.value)), 10.0).value) == 10


def test_what_is_too_narrow_is_left_out_and_counted() -> None:
    tree = flame.fold(known("main;a", "main;b;c", "main;d"), counts(98, 1, 1), below_ratio=0.02)
    assert set(paths(tree)) == {"all", "main", "main;a"}
    assert (tree.pruned.branches, tree.pruned.samples, tree.pruned.below_ratio) == (2, 2, 0.02)
    assert tree.total == 100


def test_a_difference_is_normalised_and_keeps_what_vanished() -> None:
    tree = flame.fold(
        known("main;stays", "main;grew", "main;gone"), counts(10, 10, 0), counts(20, 0, 20), below_ratio=0
    )
    children = flame.nested(tree)["children"][0]["children"]
    assert {child["name"]: (child["value"], child["base"], child["delta"]) for child in children} == {
        "stays": (10, 20, 0), "grew": (10, 0, 10), "gone": (0, 20, -10),
    }  # fmt: skip
    assert tree.width[0] == 20


def test_a_difference_with_nothing_still_shows_what_was_there() -> None:
    tree = flame.fold(known("main;a"), counts(0), counts(4))
    assert tree.total == 0
    assert flame.nested(tree)["children"][0]["delta"] == -4


def test_no_sample_is_an_empty_tree() -> None:
    tree = flame.fold(known("main"), counts(0))
    assert (tree.total, len(tree.value)) == (0, 1)
    assert flame.nested(tree)["children"] == []


def test_a_sample_without_a_stack_is_counted(tmp_path: Path) -> None:
    with opened(tmp_path, Sample(1, None), Sample(2, "main")) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1)
        tree = flame.fold(selection.stacks, selection.counts())
    assert paths(tree) == {"all": (2, 0), "?": (1, 1), "main": (1, 1)}


STACK = st.lists(st.sampled_from(["main", "a", "b", "[k]read", "[k]do_syscall_64"]), min_size=1, max_size=7).map(
    ";".join
)
SAMPLED = st.lists(st.tuples(STACK, st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=30)


@given(SAMPLED, st.booleans(), st.sampled_from([0.0, 0.01, 0.2]))
def test_no_sample_is_lost_or_counted_twice(sampled: list[tuple[str, int, int]], invert: bool, below: float) -> None:
    stacks = known(*(stack for stack, _, _ in sampled))
    now = counts(*(count for _, count, _ in sampled))
    tree = flame.fold(stacks, now, invert=invert, below_ratio=below)
    assert tree.total == now.sum()
    assert tree.self_value.sum() + tree.pruned.samples == tree.total
    children = np.bincount(tree.parent[1:], tree.value[1:], len(tree.value))
    assert (tree.value - tree.self_value >= children).all()
    if not below and not invert:
        folded: Counter[str] = Counter()
        for stack, count, _ in sampled:
            folded[stack.replace("[k]", "")] += count
        own = {path: value for path, (_, value) in paths(tree).items() if value}
        assert own == {stack: count for stack, count in folded.items() if count}


@given(SAMPLED, st.booleans())
def test_a_window_does_not_differ_from_itself(sampled: list[tuple[str, int, int]], invert: bool) -> None:
    stacks = known(*(stack for stack, _, _ in sampled))
    now = counts(*(count for _, count, _ in sampled))
    tree = flame.fold(stacks, now, now, invert=invert)
    assert tree.delta is not None
    assert tree.delta == pytest.approx(0)


@given(SAMPLED)
def test_frames_lie_within_their_parents_and_not_over_each_other(sampled: list[tuple[str, int, int]]) -> None:
    stacks = known(*(stack for stack, _, _ in sampled))
    now, before = counts(*(count for _, count, _ in sampled)), counts(*(count for *_, count in sampled))
    tree = flame.fold(stacks, now, before, below_ratio=0)
    left, width = flame.lefts(tree), tree.width
    parent = tree.parent[1:]
    assert (left[1:] >= left[parent] - 1e-6).all()
    assert (left[1:] + width[1:] <= left[parent] + width[parent] + 1e-6).all()
    for depth in range(1, int(tree.depth[-1]) + 1):
        nodes = np.flatnonzero(tree.depth == depth)
        nodes = nodes[np.argsort(left[nodes], kind="stable")]
        assert (left[nodes][1:] >= (left + width)[nodes][:-1] - 1e-6).all()


Slow = dict[tuple[str, ...], list[int]]


def slow_fold(
    sampled: list[tuple[str, int, int]], *, invert: bool, differs: bool, below: float
) -> tuple[Slow, int, int, list[tuple[str, ...]]]:
    """The tree written down plainly: path -> [value, self, base], branches left out, samples in them, and the last
    path of each stack that was kept."""
    now, before = sum(count for _, count, _ in sampled), sum(count for *_, count in sampled)
    runs = [tuple(stack.split(";"))[:: -1 if invert else 1] if stack else () for stack, _, _ in sampled]
    runs = [_charged(run) if invert else run for run in runs]
    every: Slow = {(): [0, 0, 0]}
    for run, (_, count, base) in zip(runs, sampled, strict=True):
        if count or (differs and base):
            for depth in range(len(run) + 1):
                node = every.setdefault(run[:depth], [0, 0, 0])
                node[0] += count
                node[1] += count if depth == len(run) else 0
                node[2] += base if differs else 0

    def visible(path: tuple[str, ...]) -> bool:
        value, _, base = every[path]
        wide = (value > 0 and value >= below * now) or (differs and base > 0 and base >= below * before)
        return not path or (wide and visible(path[:-1]))

    kept = {path: node for path, node in every.items() if visible(path)}
    given_up = [path for path in every if path not in kept and path[:-1] in kept]
    ends = [next(run[:depth] for depth in range(len(run), -1, -1) if run[:depth] in kept) for run in runs]
    return kept, len(given_up), sum(every[path][0] for path in given_up), ends


def _charged(run: tuple[str, ...]) -> tuple[str, ...]:
    """An inverted stack without leaves that only look hot."""
    while len(run) > 1 and run[0] == "[k]do_syscall_64":
        run = run[1:]
    return run


@given(
    st.lists(st.tuples(st.one_of(STACK, st.just("")), st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=30),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.01, 0.2]),
)
def test_the_native_fold_is_the_plain_one(
    sampled: list[tuple[str, int, int]], invert: bool, differs: bool, below: float
) -> None:
    names = sorted({name for stack, _, _ in sampled for name in stack.split(";") if name})
    functions = (UNKNOWN, *(Function(name, None, "kernel" if "[k]" in name else "user") for name in names))
    functions = tuple(function._replace(name=function.name.removeprefix("[k]")) for function in functions)
    spelled = {1 + number: name for number, name in enumerate(names)}
    lengths = [len(stack.split(";")) if stack else 0 for stack, _, _ in sampled]
    flat = [1 + names.index(name) for stack, _, _ in sampled for name in stack.split(";") if name]
    ends = np.cumsum([0, *lengths])
    stacks = Stacks(functions, np.array(flat, np.int32), ends[:-1], ends[1:])
    now, before = (np.array([row[side] for row in sampled], np.int64) for side in (1, 2))
    if not all(lengths) and invert:
        return  # skid is looked for in the last frame, and a recording has no stack without one
    tree = flame.fold(stacks, now, before if differs else None, invert=invert, below_ratio=below)
    kept, branches, lost, last = slow_fold(sampled, invert=invert, differs=differs, below=below)

    found: list[tuple[str, ...]] = [()]
    for node in range(1, len(tree.value)):
        found.append((*found[tree.parent[node]], spelled[int(tree.function[node])]))
        assert tree.depth[node] == len(found[node])
        assert tree.parent[node] < node
    base = tree.base if tree.base is not None else np.zeros(len(found), np.int64)
    rows = zip(tree.value.tolist(), tree.self_value.tolist(), base.tolist(), strict=True)
    assert {path: list(row) for path, row in zip(found, rows, strict=True)} == kept
    assert len(set(found)) == len(found)
    assert (tree.pruned.branches, tree.pruned.samples) == (branches, lost)
    for row, (_, count, other) in enumerate(sampled):
        if count or (differs and other):
            assert found[tree.leaf[row]] == last[row]
        else:
            assert tree.leaf[row] == -1
    order = [(len(path), found.index(path[:-1]) if path else -1, path[-1].removeprefix("[k]") if path else "")
             for path in found]  # fmt: skip
    assert order == sorted(order), "breadth first, children in the order of name"
