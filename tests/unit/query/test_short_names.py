"""Names of functions in few columns: real ones of libtorch, and what hypothesis makes up."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from zombiescope.query.short_names import fitted

CASES = json.loads((Path(__file__).parents[2] / "fixtures/short-names.json").read_text())
"""The page is tested against the same list (ui/src/format/function-name.test.ts)."""
PARTS = st.sampled_from(["std", "at", "native", "vector", "Tensor", "loop2d", "operator<", "operator->", "f", "long"])
NAMES = st.recursive(
    st.lists(PARTS, min_size=1, max_size=3).map("::".join),
    lambda inner: st.builds(
        lambda name, given: f"{name}<{', '.join(given)}>::call", PARTS, st.lists(inner, min_size=1)
    ),
    max_leaves=20,
)


def test_names_are_shortened_as_the_list_says() -> None:
    for case in CASES:
        assert fitted(case["name"], case["room"]) == case["shown"], case["name"]


def test_two_functions_of_a_real_library_never_look_alike() -> None:
    names = {case["name"] for case in CASES}
    assert len({fitted(name, 45) for name in names}) == len(names)
    assert len({name[:45] for name in names}) < len(names)  # as they did when they were cut at their end


def test_the_functions_own_name_stays() -> None:
    long = "at::native::DispatchStub<void (*)(at::TensorIteratorBase&, c10::Scalar), at::native::add_stub>::choose"
    assert fitted(long, 45).startswith("at::native::DispatchStub<…>::choose~")


@given(NAMES, st.integers(0, 90))
def test_it_always_fits_and_short_names_are_left_alone(name: str, width: int) -> None:
    shown = fitted(name, width)
    assert len(shown) <= max(width, 0)
    assert shown == name or len(name) > width


@given(NAMES, NAMES)
def test_what_differs_looks_different(one: str, other: str) -> None:
    assert (one == other) == (fitted(one, 45) == fitted(other, 45))
