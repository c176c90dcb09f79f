"""Vectors and the hash table, as seen from outside: growth, keys that look alike, removal, sizes that lie."""

from __future__ import annotations

import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zombiescope._native import FunctionSet, IdMap, JitMap, KernelSymbols, PerfScriptText, StackInterner, StackSet

MANY = 300_000  # more than seven doublings of the smallest table


def test_numbers_stay_the_same_while_the_table_grows() -> None:
    interner = StackInterner()
    numbers = [interner.intern([number, number >> 3, 7]) for number in range(MANY)]
    assert numbers == list(range(1, MANY + 1))
    assert [interner.intern([number, number >> 3, 7]) for number in range(0, MANY, 97)] == numbers[::97]
    assert len(interner) == MANY


def test_an_empty_stack_is_a_stack() -> None:
    interner = StackInterner()
    assert interner.intern([]) == interner.intern([]) == 1
    assert interner.intern([0]) == 2
    assert [list(part) for part in interner.take_new()[1:]] == [[0, 1], [0]]


def test_what_was_handed_out_is_not_handed_out_again_until_cleared() -> None:
    interner = StackInterner()
    interner.intern([1, 2])
    assert interner.take_new()[0] == 1
    interner.intern([3])
    first, lengths, flat = interner.take_new()
    assert (first, list(lengths), list(flat)) == (2, [1], [3])
    interner.clear()
    assert (len(interner), interner.intern([3])) == (0, 1)


@pytest.mark.parametrize("step", [1, 8, 4096, 1 << 20, 1 << 32, 1 << 44])
def test_keys_that_differ_in_few_bits_are_told_apart(step: int) -> None:
    ids = IdMap()
    keys = [number * step for number in range(20_000)]
    for value, key in enumerate(keys):
        ids.set(key, value)
    assert [ids.get(key) for key in keys] == list(range(len(keys)))
    assert ids.get(step // 2 + len(keys) * step) is None


def test_removal_leaves_the_others_to_be_found() -> None:
    chance = random.Random(4)
    ids, expected = IdMap(), dict[int, int]()
    for _ in range(60_000):
        key = chance.randrange(3000)
        if chance.random() < 0.5:
            assert ids.pop(key) == expected.pop(key, None)
        else:
            value = chance.getrandbits(32)
            ids.set(key, value)
            expected[key] = value
    assert len(ids) == len(expected)
    keys, values = ids.items()
    assert dict(zip(keys, values, strict=True)) == expected
    assert all(ids.get(key) == expected.get(key) for key in range(3000))


def test_keys_that_come_and_go_take_no_more_memory() -> None:
    ids = IdMap()
    for key in range(2000):
        ids.set(key, key)
    before = ids.nbytes
    for key in range(100_000):
        ids.set(key + 2000, key)
        assert ids.pop(key) is not None
    assert (len(ids), ids.nbytes) == (2000, before)


@given(st.lists(st.lists(st.integers(0, (1 << 32) - 1), max_size=12), max_size=60))
@settings(max_examples=150, deadline=None)
def test_a_stack_has_one_number_and_a_number_one_stack(stacks: list[list[int]]) -> None:
    interner = StackInterner()
    numbers = [interner.intern(stack) for stack in stacks]
    known: dict[tuple[int, ...], int] = {}
    for stack, number in zip(stacks, numbers, strict=True):
        assert known.setdefault(tuple(stack), number) == number
    assert len(interner) == len(known)
    _, lengths, flat = interner.take_new()
    assert (list(lengths), list(flat)) == ([len(run) for run in known], [frame for run in known for frame in run])


def columns(texts: list[bytes]) -> tuple[array[int], bytes]:
    offsets = array("i", [0])
    for text in texts:
        offsets.append(offsets[-1] + len(text))
    return offsets, b"".join(texts)


def test_texts_are_one_function_only_if_they_are_cut_at_the_same_place() -> None:
    functions = FunctionSet()
    names, modules, kinds = [b"ab", b"a", b"ab"], [b"c", b"bc", b"c"], [b"user"] * 3
    numbers, new = functions.add(3, columns(names), columns(modules), columns(kinds))
    assert (list(numbers), new, len(functions)) == ([0, 1, 0], [0, 1], 2)


def test_a_name_and_its_file_are_cut_at_the_same_place_in_text() -> None:
    places: list[tuple[bytes, bytes | None]] = []

    def place(name: bytes, dso: bytes | None, high: bool) -> tuple[str, str, str]:
        places.append((name, dso))
        return name.decode(), "" if dso is None else dso.decode(), "user"

    text = PerfScriptText(place)
    text.feed(b"a 1/1 [000] 1.000001: 1 cpu-clock: \n\t  401000 one (two (three)\n\t  401000 one (two) (three)\n\n")
    text.finish()
    assert len(places) == len(set(places)) == 2


@pytest.mark.parametrize("offsets", [[0, 5], [0, -1], [2, 1], [-1, 1]])
def test_offsets_outside_their_column_are_refused(offsets: list[int]) -> None:
    bad, empty = array("i", offsets), (array("i", [0, 0]), b"")
    with pytest.raises(ValueError, match="outside its column"):
        StackSet().add(bad, array("i", [1, 2, 3]), array("i", [0, 1, 2, 3]))
    if offsets[1] > offsets[0]:
        with pytest.raises(ValueError, match="outside its column"):
            FunctionSet().add(1, (bad, b"abc"), empty, empty)


def test_stacks_and_functions_grow_over_many_doublings() -> None:
    stacks, functions = StackSet(), FunctionSet()
    offsets, frames = array("i", range(0, 3 * 50_000 + 1, 3)), array("i", (number // 2 for number in range(150_000)))
    names = columns([b"function number %d" % number for number in range(50_000)])
    blank = (array("i", bytes(4 * 50_001)), b"")
    identity = array("i", range(75_000))
    first, again = stacks.add(offsets, frames, identity), stacks.add(offsets, frames, identity)
    assert first == again
    assert functions.add(50_000, names, blank, blank)[0] == array("i", range(50_000))
    assert functions.add(50_000, names, blank, blank)[1] == []


def test_a_map_of_code_stays_within_its_limit() -> None:
    code = JitMap(100)
    for number in range(10_000):
        code.add(0x1000 + number * 16, 16, number, 4)
    assert len(code) <= 100
    assert code.find(0x1000 + 9_999 * 16) == (0x1000 + 9_999 * 16, 16, 9_999, 4)


def test_kernel_symbols_beyond_the_first_room_are_found() -> None:
    symbols = KernelSymbols()
    for first in range(0, 200_000, 1000):
        symbols.feed(b"".join(b"%x t f%d\n" % (0xFFFFFFFF80000000 + n * 16, n) for n in range(first, first + 1000)))
    symbols.finish()
    assert len(symbols) == 200_000
    assert symbols.lookup(0xFFFFFFFF80000000 + 199_999 * 16 + 3) == ("f199999", "")


@pytest.mark.parametrize(
    ("marker", "function"),
    [
        ("__sched_text_start", "__schedule"),
        ("__lock_text_start", "_raw_spin_lock"),
        ("__cpuidle_text_start", "default_idle"),
        ("__irqentry_text_start", "asm_exc_divide_error"),
        ("__softirqentry_text_start", "__do_softirq"),
        ("__noinstr_text_start", "native_sched_clock"),
        ("__kprobes_text_end", "kprobe_handler"),
        ("__entry_text_start", "entry_SYSCALL_64"),
        ("_stext", "startup_64"),
        ("_text", "startup_64"),
        ("_etext", "last"),
        ("__SCT__might_resched", "__cond_resched"),
        ("__pfx_schedule", "schedule"),
        ("__cfi_schedule", "schedule"),
    ],
)
@pytest.mark.parametrize("marker_first", [True, False])
def test_a_marker_of_a_section_does_not_hide_the_function_that_begins_there(
    marker: str, function: str, marker_first: bool
) -> None:
    # GIVEN a marker, which is global, at the address of a function, which is local
    lines = [f"ffffffff81a00000 T {marker}\n", f"ffffffff81a00000 t {function}\n"]
    symbols = KernelSymbols()
    symbols.feed("".join(lines if marker_first else reversed(lines)).encode())
    symbols.finish()
    assert symbols.lookup(0xFFFFFFFF81A00010) == (function, "")


@pytest.mark.parametrize("name", ["_text_start_of_mine", "schedule_text", "text_start", "_", "_text_start"])
def test_a_name_that_only_resembles_a_marker_ranks_as_it_is(name: str) -> None:
    symbols = KernelSymbols()
    symbols.feed(f"ffffffff81a00000 t local\nffffffff81a00000 T {name}\n".encode())
    symbols.finish()
    assert symbols.lookup(0xFFFFFFFF81A00000) == (name, "")


def test_a_marker_where_nothing_else_stands_is_shown() -> None:
    symbols = KernelSymbols()
    symbols.feed(b"ffffffff81a00000 T __sched_text_start\nffffffff81a00010 t __schedule\n")
    symbols.finish()
    assert symbols.lookup(0xFFFFFFFF81A00008) == ("__sched_text_start", "")
