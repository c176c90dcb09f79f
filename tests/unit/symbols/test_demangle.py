"""C++ and Rust names against the tools that everybody uses, and names made to explode."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import Needs

from zombiescope.symbols.demangle import demangle
from zombiescope.symbols.itanium_codes import MAX_TEXT

Build = Callable[..., Path]


@pytest.mark.parametrize(
    ("mangled", "readable"),
    [
        ("main", "main"),
        ("", ""),
        ("_start", "_start"),
        ("__libc_start_main", "__libc_start_main"),
        ("_Zbogus", "_Zbogus"),
        ("_Rbogus", "_Rbogus"),
        ("runtime.(*mheap).alloc", "runtime.(*mheap).alloc"),
        ("_ZNK3PtrI3FooSt14default_deleteIS0_EEptEv", "Ptr<Foo, std::default_delete<Foo> >::operator->"),
        ("_ZN3Arc9operatorAEv", "Arc::operatorA"),
        ("_ZN3VecplERKS_", "Vec::operator+"),
        ("_ZN3VecpmEi", "Vec::operator->*"),
        ("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", "std::operator<< <std::char_traits<char> >"),
        ("_ZN3FoocvbEv", "Foo::operator bool"),
        ("_ZN3FooC2Ev.cold", "Foo::Foo"),
        ("_ZN12_GLOBAL__N_13runEv", "(anonymous namespace)::run"),
        ("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()"),
        ("_ZN3FooIPFivEE3barEv", "Foo<int (*)()>::bar"),
        ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
        (
            "_ZN59_$LT$core..fmt..Arguments$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
            "<core::fmt::Arguments as core::fmt::Display>::fmt",
        ),
        ("_RNvCs6xxl1lAjzDf_7mycrate3foo", "mycrate::foo"),
        ("_RINvCs6xxl1lAjzDf_1a7generichKj2_EB2_", "a::generic::<u8, 2>"),
        ("_RNCNvCs6xxl1lAjzDf_1a4main0B3_", "a::main::{closure#0}"),
    ],
)  # fmt: skip
def test_known_names(mangled: str, readable: str) -> None:
    assert demangle(mangled) == readable


def functions_of(path: Path, *options: str) -> list[str]:
    text = subprocess.run(["nm", "--defined-only", *options, path], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in text.splitlines()]
    return sorted({line[2].split("@")[0] for line in lines if len(line) == 3 and line[1] in "tTwWi"})


def filtered(names: list[str], *options: str) -> list[str]:
    command = ["c++filt", *options]
    return subprocess.run(command, input="\n".join(names), capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )


def alike(readable: str) -> str:
    """Without what is only manner: blanks, parameters behind the name, and std::string written out."""
    readable = re.sub(
        r"std::basic_(string|[io]stream|iostream)<char, std::char_traits<char>(, std::allocator<char> )?>",
        r"std::\1",
        readable,
    )
    return (
        re.sub(r"\([^()]*\)( const)?$", "", readable.replace(" ", ""))
        if "thunk" in readable
        else readable.replace(" ", "")
    )


def test_names_of_a_large_library_are_those_of_cxxfilt(needs: Needs) -> None:
    needs.binary("c++filt", "binutils")
    library = next(path for path in Path(pyarrow.get_library_dirs()[0]).glob("libarrow.so.*"))
    names = [name for name in functions_of(library, "-D") if name.startswith("_Z")]
    names = names[:: max(1, len(names) // 3000)]
    pairs = [(alike(demangle(name)), alike(truth)) for name, truth in zip(names, filtered(names, "-p"), strict=False)]
    same = sum(ours == truth for ours, truth in pairs)
    left = sum(demangle(name) == name for name in names)
    assert len(names) > 2000
    assert same / len(names) > 0.97
    assert left / len(names) < 0.01


def test_names_of_a_rust_program_are_those_of_cxxfilt(needs: Needs, tmp_path: Path) -> None:
    needs.binary("c++filt", "binutils")
    names = (Path(__file__).parents[2] / "fixtures" / "rust-v0-names.txt").read_text().split()
    hashes = re.compile(r"\[[0-9a-f]{12,16}\]")
    types = re.compile(r"(\d|true|false): (?:[ui]\d+|[ui]size|bool)")
    for name, truth in zip(names, filtered(names), strict=False):
        assert demangle(name) == types.sub(r"\1", hashes.sub("", truth))


def test_operators_of_a_real_program(build: Build) -> None:
    source = """
    struct P { int x; int *operator->() { return &x; } int operator->*(int y) { return x + y; } };
    struct Q { P p; __attribute__((noinline)) P &operator->() { __asm__ volatile(""); return p; } };
    template <class T> __attribute__((noinline)) bool operator<(T a, Q b) { __asm__ volatile(""); return b.p.x > a; }
    int main() { Q q{{1}}; return *q.operator->().operator->() + (1 < q); }
    """
    path = build(source, "-x", "c++", "-lstdc++", "-O0", language="c++")
    readable = {demangle(name) for name in functions_of(path)}
    assert {"Q::operator->", "P::operator->", "operator< <int>", "main"} <= readable


@pytest.mark.parametrize("piece", ["J", "I", "N", "P", "L_Z1fI", "XadL_Z1fI", "1aI", "DpP"])
def test_a_name_that_is_nested_deeply_is_left_as_it_is(piece: str) -> None:
    for begin in ("_Z1fI", "_Z1fIJ", "_ZN1aI"):
        name = begin + piece * 3000
        assert demangle(name) == name


def test_a_name_that_doubles_is_left_as_it_is() -> None:
    # f(A<int, int>, A<the one before, the one before>, ...)::g
    def doubled(times: int) -> str:
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        return "_ZZ1f1AIiiE" + "".join(f"S_IS{digits[number]}_S{digits[number]}_E" for number in range(times)) + "E1g"

    assert demangle(doubled(1)) == "f(A<int, int>, A<A<int, int>, A<int, int> >)::g"
    assert demangle(doubled(30)) == doubled(30)
    nested = "_ZN" + "1AI" * 3000 + "i" + "E" * 3001
    assert demangle(nested) == nested
    backrefs = "_RNvC1a" + "T" * 400 + "B2_" * 50
    assert demangle(backrefs) == backrefs
    doubling = "_RINvC1a1f" + "".join("TB6_B6_E" for _ in range(40)) + "E"
    assert len(demangle(doubling)) <= MAX_TEXT


@settings(
    max_examples=int(os.environ.get("ZOMBIESCOPE_FUZZ", "500")), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(data=st.data())
def test_any_text_is_answered(data: st.DataObject) -> None:
    seeds = [
        "_ZNKSt10unique_ptrI3FooSt14default_deleteIS0_EEptEv", "_ZZ4mainENKUliE_clEi",
        "_ZN3FooIPFivEE3barIJiLi5EEEEvT_", "_RINvCs6xxl1lAjzDf_1a7genericTlReEKj1_EB2_",
        "_RNvXs_NtC1a1bINtB4_2SqdENtB4_5Shape4area",
        "_ZN59_$LT$core..fmt..Arguments$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
    ]  # fmt: skip
    name = list(data.draw(st.sampled_from(seeds)))
    for _ in range(data.draw(st.integers(0, 5))):
        at = data.draw(st.integers(2, len(name) - 1))
        name[at] = data.draw(st.sampled_from([*"ESTNIZPRJLX_0123456789sBCDFMQKabcdefuT", "é", "\0", "\n"]))
    text = "".join(name[: data.draw(st.integers(2, len(name)))])
    assert len(demangle(text)) <= max(MAX_TEXT * 2, len(text))
