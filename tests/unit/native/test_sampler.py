"""The decoder, fed with records made by hand: order, idle, names, and every kind of damage."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers import records
from tests.helpers.records import KERNEL, USER

from zombiescope._native import KernelSymbols, Sampler

KALLSYMS = b"""\
ffffffff81000000 T _text
ffffffff81001000 T do_idle
ffffffff81002000 t cpu_startup_entry
ffffffff81003000 T handle_softirqs
ffffffff81004000 T net_rx_action
ffffffff81005000 T pv_native_safe_halt
ffffffff81006000 t walk.isra.0
ffffffff81007000 T asm_sysvec_apic_timer_interrupt
ffffffff81008000 D some_data
ffffffffc0001000 t ena_io_poll\t[ena]
"""
IDLE, STARTUP, SOFTIRQ, NET_RX, HALT, WALK, INTERRUPT, ENA = (
    0xFFFFFFFF81000010 + 0x1000 * number for number in (1, 2, 3, 4, 5, 6, 7, 0)
)
ENA = 0xFFFFFFFFC0001010
FOR_EVER = 1 << 62


def symbols(text: bytes = KALLSYMS) -> KernelSymbols:
    made = KernelSymbols()
    made.feed(text)
    made.finish()
    return made


def sampler(**options: bool) -> Sampler:
    made = Sampler(symbols(), 4, **options)
    made.register(records.CLOCK_ID, 0)
    for number in range(1, 4):
        made.register(100 + number, number)
    return made


def stacks_of(decoder: Sampler) -> list[tuple[int, int, list[str]]]:
    """(time_us, task, frame names outermost first) of every finished sample."""
    times, _, tasks, stacks, _ = decoder.rows.take_samples(0, FOR_EVER)
    names = {number: name for number, name, _, _ in decoder.rows.take_frames()}
    first, lengths, flat = decoder.rows.stacks.take_new()
    runs: dict[int, list[str]] = {}
    start = 0
    for number, length in enumerate(lengths, first):
        runs[number] = [names[frame] for frame in flat[start : start + length]]
        start += length
    return [(time, task, runs[stack]) for time, task, stack in zip(times, tasks, stacks, strict=True)]


def test_a_kernel_stack_is_stored_outermost_first_without_clone_suffixes() -> None:
    decoder = sampler()
    decoder.feed(0, records.sample(5, 5, 2_000_000, [KERNEL, ENA, WALK + 1, NET_RX + 1]))
    assert stacks_of(decoder) == [(2000, 1, ["net_rx_action", "walk", "ena_io_poll"])]


def test_return_addresses_are_looked_up_inside_the_call() -> None:
    # GIVEN a return address that is the first byte of the next function
    decoder = sampler()
    decoder.feed(0, records.sample(5, 5, 1000, [KERNEL, WALK, 0xFFFFFFFF81004000]))
    # THEN the caller is the function before it
    assert stacks_of(decoder)[0][2] == ["handle_softirqs", "walk"]


@pytest.mark.parametrize(
    ("chain", "is_idle"),
    [
        ([HALT, IDLE, STARTUP], True),
        ([IDLE, STARTUP], True),
        ([NET_RX, SOFTIRQ, INTERRUPT, HALT, IDLE, STARTUP], False),  # work on top of idle
        ([IDLE, SOFTIRQ, STARTUP], True),  # an interrupt frame below idle did not interrupt it
        ([WALK], False),
    ],
)
def test_idle_is_a_context(chain: list[int], is_idle: bool) -> None:
    decoder = sampler()
    decoder.feed(2, records.sample(0, 0, 1000, [KERNEL, *chain]))
    got, idle, _, _ = decoder.take_cores(2000)[2]
    assert (got, idle) == (1, int(is_idle))
    assert len(stacks_of(decoder)) == int(not is_idle)


def test_idle_frames_of_a_process_are_not_idle() -> None:
    decoder = sampler()
    decoder.feed(0, records.sample(9, 9, 1000, [KERNEL, IDLE, STARTUP]))
    assert decoder.take_cores(1)[0][1] == 0


def test_pid_zero_outside_the_host_namespace_is_somebody_else() -> None:
    decoder = sampler(host_pids=False)
    decoder.feed(0, records.sample(0, 0, 1000, [USER, 0x400000]))
    decoder.feed(0, records.sample(0, 0, 2000, [KERNEL, WALK]))
    assert decoder.take_cores(3000)[0][:2] == (2, 0)
    assert [task[3] for task in decoder.take_tasks()] == ["(outside this PID namespace)"]


def test_without_kernel_symbols_pid_zero_is_idle_only_on_the_host() -> None:
    hidden = b"0000000000000000 T do_idle\n"
    for host, idle in ((True, 1), (False, 0)):
        decoder = Sampler(symbols(hidden), 1, host_pids=host)
        decoder.register(records.CLOCK_ID, 0)
        decoder.feed(0, records.sample(0, 0, 1000, [KERNEL, WALK]))
        assert decoder.take_cores(2000)[0][1] == idle


def test_records_are_read_in_the_order_of_time() -> None:
    # GIVEN a ring in which the exec is written after the sample it names (another CPU was drained first)
    decoder = sampler()
    decoder.feed(
        0,
        records.sample(50, 50, 3000, [KERNEL, WALK])
        + records.comm(50, 50, b"late", 4000)
        + records.fork(50, 40, 50, 40, 1000)
        + records.comm(50, 50, b"early", 2000, is_exec=True)
        + records.sample(50, 50, 5000, [KERNEL, WALK]),
    )
    assert [(task[3], task[4]) for task in decoder.take_tasks()] == [("early", 40), ("late", 40)]


def test_a_forked_child_has_its_parents_name_until_it_execs() -> None:
    decoder = sampler()
    decoder.feed(0, records.comm(40, 40, b"python3", 1) + records.fork(41, 40, 41, 40, 2))
    decoder.feed(0, records.sample(41, 41, 3, [KERNEL, WALK]))
    assert decoder.take_tasks()[0][3] == "python3"


def test_a_tid_used_again_is_another_task() -> None:
    decoder = sampler()
    decoder.feed(0, records.comm(60, 60, b"first", 1, is_exec=True) + records.sample(60, 60, 2, [KERNEL, WALK]))
    decoder.feed(
        0, records.leave(60, 60, 3) + records.fork(60, 1, 60, 1, 4) + records.sample(60, 60, 5, [KERNEL, WALK])
    )
    tasks = decoder.take_tasks()
    assert [task[0] for task in tasks] == [1, 2]


def test_a_task_says_when_its_process_was_forked_and_a_thread_says_the_same() -> None:
    decoder = sampler()
    decoder.feed(0, records.fork(50, 40, 50, 40, 1000) + records.fork(50, 50, 51, 50, 2000))
    decoder.feed(0, records.sample(50, 50, 3000, [KERNEL, WALK]) + records.sample(50, 51, 4000, [KERNEL, WALK]))
    decoder.feed(0, records.sample(60, 60, 5000, [KERNEL, WALK]))
    assert [(task[2], task[6]) for task in decoder.take_tasks()] == [(50, 1000), (51, 1000), (60, None)]


def test_a_mark_that_the_kernel_left_from_another_listener_is_not_believed() -> None:
    decoder = sampler()
    spoiled = records.mmap2(70, 0x1000, 0x2000, 0x3000, b"/bin/short", 2, b"\xaa" * 20)
    decoder.feed(0, records.comm(70, 70, b"short", 1, is_exec=True) + spoiled)
    mappings = decoder.mappings(70)
    assert mappings is not None
    (found,) = mappings
    assert found[3][:2] == (b"/bin/short", None)


def test_code_maps_of_a_dead_process_are_kept_for_one_more_drain() -> None:
    decoder = sampler(has_build_id=True)
    decoder.feed(
        0,
        records.comm(70, 70, b"short", 1, is_exec=True)
        + records.mmap2(70, 0x1000, 0x2000, 0x3000, b"/bin/short", 2, b"\xaa" * 20)
        + records.mmap2(70, 0x9000, 0x1000, 0, b"/lib/x.so", 3)
        + records.leave(70, 70, 4),
    )
    decoder.sweep(100)
    assert decoder.mappings(70) == [
        (0x1000, 0x3000, 0x3000, (b"/bin/short", b"\xaa" * 20, 0, 0, 0)),
        (0x9000, 0xA000, 0, (b"/lib/x.so", None, 8, 1, 4242)),
    ]
    for _ in range(3):
        decoder.feed(0, b"")
        decoder.sweep(100)
    assert decoder.mappings(70) is None


def test_files_that_nobody_maps_any_more_are_forgotten() -> None:
    decoder = sampler()
    for number in range(1, 9000):
        pid = 100 + number
        burst = records.comm(pid, pid, b"x", number, is_exec=True)
        burst += records.mmap2(pid, 0x1000, 0x1000, 0, b"/tmp/unique-%d" % number, number)
        decoder.feed(0, burst + (records.leave(pid, pid, number) if number % 1000 else b""))
        decoder.sweep(1 << 20)
    # THEN those still mapped keep their names
    assert decoder.mappings(1100) == [(0x1000, 0x2000, 0, (b"/tmp/unique-1000", None, 8, 1, 4242))]
    assert decoder.mappings(8100) == [(0x1000, 0x2000, 0, (b"/tmp/unique-8000", None, 8, 1, 4242))]
    assert decoder.files < 2100


def test_user_frames_wait_for_their_names_and_garbage_is_dropped() -> None:
    decoder = sampler()
    decoder.feed(0, records.sample(80, 80, 1000, [KERNEL, WALK, USER, 0x5000, 0x6001, 0x7001]))
    [(space, pid, addresses)] = decoder.rows.take_wanted()
    assert (pid, addresses) == (80, [0x5000, 0x6000, 0x7000])
    assert len(decoder.rows.take_samples(0, 0)[0]) == 0
    decoder.rows.answer(space, 0x5000, decoder.rows.frame("leaf", "a.out", "user"))
    decoder.rows.answer(space, 0x6000, None)
    decoder.rows.answer(space, 0x7000, decoder.rows.frame("main", "a.out", "user"))
    assert stacks_of(decoder)[0][2] == ["main", "leaf", "walk"]
    assert decoder.rows.garbage_frames == 1


def test_a_sample_nobody_could_name_is_still_written() -> None:
    decoder = sampler()
    decoder.feed(0, records.sample(80, 80, 1000, [USER, 0x5000, 0x6001]))
    assert stacks_of(decoder)[0][2] == ["[unresolved]"]


def test_exec_makes_known_addresses_unknown_again() -> None:
    decoder = sampler()
    decoder.feed(0, records.sample(80, 80, 1, [USER, 0x5000]))
    before = decoder.rows.take_wanted()[0][0]
    decoder.feed(0, records.comm(80, 80, b"new", 2, is_exec=True) + records.sample(80, 80, 3, [USER, 0x5000]))
    after = decoder.rows.take_wanted()[0][0]
    assert before != after


def test_bpf_programs_are_named_while_they_are_loaded() -> None:
    decoder = sampler()
    address = 0xFFFFFFFFC0500000
    decoder.feed(
        0, records.ksymbol(address, 64, b"bpf_prog_abc_watch", 1) + records.sample(5, 5, 2, [KERNEL, address + 8])
    )
    decoder.feed(0, records.ksymbol(address, 64, b"bpf_prog_abc_watch", 3, gone=True))
    decoder.feed(0, records.sample(5, 5, 4, [KERNEL, address + 8]))
    assert [stack for _, _, stack in stacks_of(decoder)] == [["bpf_prog_abc_watch"], ["[unknown kernel code]"]]


def test_gaps_and_losses_are_counted_per_core() -> None:
    decoder = sampler()
    decoder.feed(
        1, records.sample(5, 5, 10_000_000, [KERNEL, WALK]) + records.sample(5, 5, 400_000_000, [KERNEL, WALK])
    )
    decoder.feed(1, records.lost(17, 410_000_000))
    assert decoder.take_cores(450_000_000)[1] == (2, 0, 390_000_000, 17)
    # an open gap grows until the next sample
    assert decoder.take_cores(1_400_000_000)[1] == (0, 0, 1_000_000_000, 0)


def test_tracepoints_come_back_whole() -> None:
    decoder = sampler()
    decoder.feed(3, records.raw_sample(102, 33, 5, b"raw bytes here"))
    [(kind, time, cpu, pid, tid, raw)] = decoder.take_tracepoints()
    assert (kind, time, cpu, pid, tid) == (2, 5, 3, 33, 33)
    assert raw.rstrip(b"\0") == b"raw bytes here"


def test_numbers_start_anew_with_a_segment() -> None:
    decoder = sampler()
    decoder.feed(0, records.sample(5, 5, 1, [KERNEL, WALK]))
    with pytest.raises(RuntimeError):
        decoder.next_segment()
    first = stacks_of(decoder)
    decoder.next_segment()
    decoder.feed(0, records.sample(5, 5, 1000, [KERNEL, WALK]))
    assert [stack for _, _, stack in stacks_of(decoder)] == [stack for _, _, stack in first]
    assert len(decoder.take_tasks()) == 1


def test_many_tasks_come_and_go_in_bounded_memory() -> None:
    decoder = sampler()
    for base in range(1, 200_000, 2000):
        burst = b"".join(records.fork(pid, 1, pid, 1, pid) for pid in range(base, base + 2000))
        decoder.feed(0, burst)
        decoder.feed(0, b"".join(records.leave(pid, pid, pid) for pid in range(base, base + 2000)))
        decoder.feed(0, b"")
        decoder.sweep(5)
    assert decoder.nbytes < 4 << 20


VALID = b"".join(
    (
        records.fork(41, 40, 41, 40, 2), records.comm(41, 41, b"x", 3, is_exec=True),
        records.mmap2(41, 0x1000, 0x1000, 0, b"/bin/x", 4), records.sample(41, 41, 5, [KERNEL, WALK, USER, 0x1000]),
        records.raw_sample(101, 1, 6, b"abc"), records.lost(3, 7), records.ksymbol(0xFFFFFFFFC0600000, 9, b"bpf", 8),
        records.leave(41, 41, 9),
    )
)  # fmt: skip


@given(st.binary(max_size=400))
def test_arbitrary_bytes_do_no_harm(data: bytes) -> None:
    decoder = sampler()
    decoder.feed(0, data)
    decoder.rows.take_samples(0, FOR_EVER)


@settings(max_examples=300)
@given(st.integers(0, 1 << 32))
def test_flipped_and_cut_records_do_no_harm(seed: int) -> None:
    dice = random.Random(seed)
    data = bytearray(VALID * 3)
    for _ in range(dice.randrange(1, 20)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    del data[dice.randrange(len(data)) :]
    decoder = sampler(has_period=dice.random() < 0.3, has_cgroup=dice.random() < 0.3)
    decoder.feed(0, bytes(data))
    decoder.sweep(1)
    decoder.mappings(41)
    decoder.rows.take_samples(0, FOR_EVER)
    decoder.take_cores(1 << 40)


def test_a_cut_record_is_counted_not_ignored() -> None:
    decoder = sampler()
    decoder.feed(0, VALID[:-4])
    assert decoder.malformed == 1
