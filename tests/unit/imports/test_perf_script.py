# ruff: noqa: E501 - lines that perf prints are kept whole
"""perf script text in the layouts that people have."""

from __future__ import annotations

import pytest
from tests.helpers.script_rows import CHAIN, Sample, parse

from zombiescope._native import PerfScriptText
from zombiescope.imports.perf_script import PerfScriptImport, ScriptHeader, place
from zombiescope.imports.rows import ImportReport


def only(text: str) -> Sample:
    (sample,) = parse(text).samples
    return sample


@pytest.mark.parametrize(
    ("line", "comm", "pid", "tid", "cpu", "time_us", "period", "event"),
    [
        ("apt-get 10397 [000] 12089.187050:    2004008 cpu-clock:ppp: ", "apt-get", 10397, 10397, 0, 12089187050, 2004008, "cpu-clock:ppp"),
        ("apt-get 10397/10398 [013] 12089.187050625:    2004008 cpu-clock:ppp: ", "apt-get", 10397, 10398, 13, 12089187050, 2004008, "cpu-clock:ppp"),
        ("apt-get 10397/10397 12089.187050: ", "apt-get", 10397, 10397, -1, 12089187050, None, ""),
        ("apt-get 10397 [000] K     12089.187050:    2004008 cycles:u: ", "apt-get", 10397, 10397, 0, 12089187050, 2004008, "cycles:u"),
        ("apt-get 10397 KW 12089.187050: cycles: ", "apt-get", 10397, 10397, -1, 12089187050, None, "cycles"),
        ("apt-get 10397 [002] dNh1 12089.187050: cycles: ", "apt-get", 10397, 10397, 2, 12089187050, None, "cycles"),
        ("apt-get 10397 [002] d.h.. 12089.187050: cycles: ", "apt-get", 10397, 10397, 2, 12089187050, None, "cycles"),
        ("two words 12089.187050: cycles: ", "two words", None, None, -1, 12089187050, None, "cycles"),
        ("python3 worker 7  1234/1235  [003] 1.000001: 1 cycles: ", "python3 worker 7", 1234, 1235, 3, 1000001, 1, "cycles"),
        ("kworker/3:1-mm   77 [003] 1.000001: 1 cycles: ", "kworker/3:1-mm", 77, 77, 3, 1000001, 1, "cycles"),
        ("(sd-pam)   900 [003] 1.000001: 1 cycles: ", "(sd-pam)", 900, 900, 3, 1000001, 1, "cycles"),
        ("a [b] c.1:   900 [003] 1.000001: 1 cycles: ", "a [b] c.1:", 900, 900, 3, 1000001, 1, "cycles"),
        ("         swapper     0 [001] 1.000001: 1 cycles: ", "swapper", 0, 0, 1, 1000001, 1, "cycles"),
        ("swapper     0 1.000001: ", "swapper", 0, 0, -1, 1000001, None, ""),
        ("perf   12 [000] 5.000001: sched:sched_switch: prev_comm=a:b prev_pid=1 ==> next_comm=c", "perf", 12, 12, 0, 5000001, None, "sched:sched_switch"),
        ("perf   12 [000] 5.000001: 1 cpu/event=0x3c,umask=0x0/:", "perf", 12, 12, 0, 5000001, 1, "cpu/event=0x3c,umask=0x0/"),
        ("perf   12 [000] 5.000001: raw 0x1a8: ", "perf", 12, 12, 0, 5000001, None, "raw 0x1a8"),
        ("  123 [000] 5.000001: cycles: ", None, 123, 123, 0, 5000001, None, "cycles"),
        ("perf 5.000001: cycles: ", "perf", None, None, -1, 5000001, None, "cycles"),
        ("date  99 [000] 1775038996.500000: 1 cycles: ", "date", 99, 99, 0, 1775038996500000, 1, "cycles"),
        # without a time
        ("apt-get 10397/10398 [004] cpu-clock:ppp: ", "apt-get", 10397, 10398, 4, -1, None, "cpu-clock:ppp"),
        ("apt-get 10397 [004]  2004008 cycles: ", "apt-get", 10397, 10397, 4, -1, 2004008, "cycles"),
        ("apt-get 10397   2004008 cycles: ", "apt-get", 10397, 10397, -1, -1, 2004008, "cycles"),
        ("apt-get 10397 cycles: ", "apt-get", 10397, 10397, -1, -1, None, "cycles"),
        ("apt-get 10397 ", "apt-get", 10397, 10397, -1, -1, None, ""),
        ("apt-get ", "apt-get", None, None, -1, -1, None, ""),
    ],
)  # fmt: skip
def test_event_lines(
    line: str,
    comm: str | None,
    pid: int | None,
    tid: int | None,
    cpu: int,
    time_us: int,
    period: int | None,
    event: str,
) -> None:
    for text in (f"{line}\n{CHAIN}\n", f"{line}\r\n{CHAIN}\r\n".replace(")\n", ")\r\n"), f"\n{line}\n{CHAIN}"):
        found = only(text)
        assert found == Sample(comm, pid, tid, cpu, time_us, period, event, ("__memset", "clear_page_erms"))


@pytest.mark.parametrize(
    ("line", "name", "module", "kind"),
    [
        ("\tffffffff821e81e7 clear_page_erms+0x7 ([kernel.kallsyms])", "clear_page_erms", "", "kernel"),
        ("\tffffffff821e81e7 clear_page_erms ([kernel.kallsyms])", "clear_page_erms", "", "kernel"),
        ("\tffffffff821e81e7 foo.isra.0+0x7 (/usr/lib/debug/boot/vmlinux-6.1.0)", "foo", "", "kernel"),
        ("\tffffffff821e81e7 foo+0x7 ([guest.kernel.kallsyms])", "foo", "", "kernel"),
        ("\tffffffff821e81e7 foo", "foo", "", "kernel"),
        ("\tffffffffc0abc123 ena_io_poll+0x1c ([ena])", "ena_io_poll", "ena", "module"),
        ("\tffffffffc0abc123 x+0x1c (/lib/modules/6.1/kernel/net/nf-conntrack.ko.xz)", "x", "nf_conntrack", "module"),
        ("\tffffffffc0abc123 bpf_prog_6deef7357e7b4530_sd+0x1c (bpf_prog_6deef7357e7b4530_sd)", "bpf_prog_6deef7357e7b4530_sd", "bpf", "bpf"),
        ("\t    7fff12345678 __vdso_clock_gettime+0x1 ([vdso])", "__vdso_clock_gettime", "[vdso]", "vdso"),
        ("\t    7f1781fd644c [unknown] (/tmp/perf-10437.map)", "[unknown]", "perf-10437.map", "jit"),
        ("\t    7f1781fd644c LazyCompile:~foo bar.js:12 (/tmp/perf-10437.map)", "LazyCompile:~foo bar.js:12", "perf-10437.map", "jit"),
        ("\t               0 [unknown] ([unknown])", "[unknown]", "", "unknown"),
        ("\tffffffff821e81e7 [unknown] ([unknown])", "[unknown]", "", "kernel"),
        ("\t          c494db v8::internal::(anonymous namespace)::Invoke+0x12b (/usr/bin/node)", "v8::internal::(anonymous namespace)::Invoke", "node", "user"),
        ("\t          c494db foo(int, char (*)[3])+0x12b (/usr/bin/node)", "foo(int, char (*)[3])", "node", "user"),
        ("\t          c494db f+0x12b (/usr/lib/a b (deleted))", "f", "a b", "user"),
        ("\t          c494db f+0x12b (/opt/x (1)/lib.so)", "f", "lib.so", "user"),
        ("\t          c494db f+0x12b (/usr/lib/libc.so.6+0x9633f)", "f", "libc.so.6", "user"),
        ("\t          c494db Foo::operator->+0x12b (/a/b)", "Foo::operator->", "b", "user"),
        ("\t          c494db Foo::operator++0x12b (/a/b)", "Foo::operator+", "b", "user"),
        ("\t          c494db Foo::operator+ (/a/b)", "Foo::operator+", "b", "user"),
        ("\t          c494db Foo::operator()() const+0x3 (/a/b)", "Foo::operator()() const", "b", "user"),
        ("\t          c494db std::map<int, std::less<int> >::at+0x3 (/a/b)", "std::map<int, std::less<int> >::at", "b", "user"),
        ("\t          c494db add", "add", "", "user"),
        ("\t          c494db (/a/b)", "[unknown]", "b", "user"),
        ("\t add (/a/b)", "add", "b", "user"),
        ("\t          c494db f\u00fc\u00df+0x3 (/a/b)", "f\u00fc\u00df", "b", "user"),
        ("                c494db f+0x3 (/a/b)", "f", "b", "user"),
    ],
)  # fmt: skip
def test_frame_lines(line: str, name: str, module: str, kind: str) -> None:
    found = parse(f"a 1 [000] 1.000000: 1 cycles: \n{line}\n\n")
    assert [sample.stack for sample in found.samples] == [(name,)]
    assert found.frames == {name: (module, kind)}


def test_the_place_may_stand_on_the_event_line() -> None:
    text = (
        "         apt-get 10397 [000] 12089.187050:    2004008 cpu-clock:ppp:  ffffffff821e81e7 clear_page_erms+0x7 ([kernel.kallsyms])\n"
        "             cc1  8946 [000] 12089.193055:    2004008 cpu-clock:ppp:            91f214 gsi_start_phis+0x4 (/usr/lib/cc1)\n"
        "             cc1  8946 [000] 12089.193060:          1 cycles:  7f001122 91f214 gsi_start_phis+0x4 (/usr/lib/cc1)\n"
        "             cc1  8946 [000] 12089.193070:  91f214 gsi_start_phis+0x4 (/usr/lib/cc1)\n"
        "             cc1  8946 [000] 12089.193080: cycles: \n"
    )  # fmt: skip
    found = parse(text)
    assert [sample.stack for sample in found.samples] == [("clear_page_erms",), *[("gsi_start_phis",)] * 3, ()]
    assert [sample.comm for sample in found.samples] == ["apt-get", "cc1", "cc1", "cc1", "cc1"]
    assert found.text.without_stack == 1


def test_inlined_functions_are_where_their_caller_is() -> None:
    text = (
        "a 1 [000] 1.000000: 1 cycles: \n"
        "\tffffffff81000010 list_add (inlined)\n\tffffffff81000010 enqueue+0x10 ([kernel.kallsyms])\n"
        "\t            1234 Vec::push (inlined)\n\t            1234 List::add (inlined)\n\t            1234 main+0x4 (/bin/app)\n\n"
    )
    found = parse(text)
    assert found.samples[0].stack == ("main", "List::add", "Vec::push", "enqueue", "list_add")
    assert found.frames["Vec::push"] == ("app", "user")
    assert found.frames["list_add"] == ("", "kernel")


def test_source_lines_are_not_frames() -> None:
    text = (
        "a 1 [000] 1.000000: 1 cycles: \n\tffffffff821e81e7 f+0x7 ([kernel.kallsyms])\n  [kernel.kallsyms][ffffffff821e81e7]\n"
        "\t            1234 main+0x4 (/bin/app)\n  main.c:12\n\na 1 [000] 2.000000: 1 cycles: \n\t            1234 main+0x4 (/bin/app)\n  main.c:13\n\n"
    )
    assert [sample.stack for sample in parse(text).samples] == [("main", "f"), ("main",)]


def test_lines_between_the_samples_are_counted() -> None:
    text = (
        "swapper     0 [000]     0.000000: PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x1208bc8)]: x [kernel.kallsyms]_text\n"
        "kthreadd     0 [000]     0.000000: PERF_RECORD_COMM: kthreadd:2/2\n"
        f"a 1 [000] 1.000000: 1 cycles: \n{CHAIN}\n"
        "a 1 [000] 1.500000: PERF_RECORD_LOST lost 24\n"
        "PERF_RECORD_FINISHED_ROUND\n"
        "failed to open /tmp/perf-12.map, continuing without symbols\n"
        f"a 1 [000] 2.000000: 1 cycles: \n{CHAIN}\n"
    )
    found = parse(text)
    assert len(found.samples) == 2
    assert found.text.skipped == {
        "PERF_RECORD_MMAP lines, which are no samples": 1,
        "PERF_RECORD_COMM lines, which are no samples": 1,
        "PERF_RECORD_LOST lines, which are no samples": 1,
        "PERF_RECORD_FINISHED_ROUND lines, which are no samples": 1,
        "samples that perf itself lost while recording": 24,
        "lines that are no perf script text": 1,
    }


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64, 1000])
def test_pieces_may_end_anywhere(piece: int) -> None:
    text = "".join(
        f"comm {at % 3} {at:5}/{at:<5} [00{at % 4}] {at}.000001:  {at} cycles: \n{CHAIN}\n" for at in range(1, 40)
    )
    assert parse(text, piece).samples == parse(text).samples
    assert len(parse(text).samples) == 39


@pytest.mark.parametrize("chained", [True, False])
def test_rows_are_cut_between_samples(chained: bool) -> None:
    tail = f"\n{CHAIN}\n" if chained else " ffffffff821e81e7 clear_page_erms+0x7 ([kernel.kallsyms])\n"
    text = "".join(f"comm{at}   12 [000] {at}.000001:  {at} cycles: {tail}" for at in range(1, 40))
    assert parse(text, 100, limit=7).samples == parse(text).samples
    assert len(parse(text).samples) == 39


@pytest.mark.parametrize(
    ("end", "samples", "why"),
    [
        ("a 2 [000] 2.000000: 1 cycles: \n\tffffffff821e81e7 clear_pa", 1, "a last stack that is cut short"),
        ("a 2 [000] 2.000000: 1 cyc", 1, "a last stack that is cut short"),
        ("a 2 [00", 1, "lines that are no perf script text"),
        ("a 2 [000] 2.000000: 1 cycles: \n\tffffffff821e81e7 f+0x1 ([kernel.kallsyms])", 2, None),
        ("\x00\x01\x02\xff" * 10, 1, "lines that are no perf script text"),
    ],
)
def test_a_text_that_ends_early(end: str, samples: int, why: str | None) -> None:
    found = parse(f"a 1 [000] 1.000000: 1 cycles: \n{CHAIN}\n{end}")
    assert len(found.samples) == samples
    if why is None:
        assert found.text.open_end
        assert not found.text.skipped
    else:
        assert sum(found.text.skipped.values()) == 1
        assert why in found.text.skipped or "a last stack that is cut short" in found.text.skipped


def test_a_text_that_begins_in_the_middle() -> None:
    found = parse(f"{CHAIN}\na 1 [000] 1.000000: 1 cycles: \n{CHAIN}\n")
    assert len(found.samples) == 1
    assert found.text.skipped == {"stacks without a line that says whose they are": 1}


def test_bytes_that_are_no_utf8() -> None:
    found = parse(b"a\xff\xfe   1 [000] 1.000000: 1 cycles: \n\t  1234 f\xc3+0x1 (/bin/\xe9)\n\n")
    assert found.samples[0].comm == "a\\xff\\xfe"
    assert found.frames == {"f\\xc3": ("\\xe9", "user")}


def test_a_line_without_end_is_not_kept_in_memory() -> None:
    text = b"x" * 3_000_000 + f"\na 1 [000] 1.000000: 1 cycles: \n{CHAIN}\n".encode()
    found = PerfScriptText(place)
    for at in range(0, len(text), 1 << 16):
        found.feed(text[at : at + (1 << 16)])
    found.finish()
    assert len(found) == 1
    assert found.skipped == {"lines longer than 1 MB": 1}


def test_idle_is_told_from_work_on_top_of_it() -> None:
    idle = "\tffffffff81 pv_native_safe_halt+0x1 ([kernel.kallsyms])\n\tffffffff82 do_idle+0x1 ([kernel.kallsyms])\n"
    busy = "\tffffffff83 mlx5e_napi_poll+0x1 ([mlx5_core])\n\tffffffff84 __do_softirq+0x1 ([kernel.kallsyms])\n" + idle
    line = "swapper     0 [000] 1.000000: 1 cycles: \n"
    assert parse(f"{line}{idle}\n{line}{busy}\n{line}{idle}\n".replace("ffffffff8", "ffffffff8000000")).idle == 2


def test_the_header_tells_of_the_node(utc: None) -> None:
    header = ScriptHeader(
        (
            "# captured on    : Sun Nov 15 11:38:06 2026",
            "# hostname : node-7",
            "# os release : 6.1.0",
            "# nrcpus online : 96",
            "# cmdline : /usr/bin/perf record -a -g : -F 99",
            "# time of last sample : 12091.221046",
            "# reference time: 2026-11-15 11:38:06.500000 = 1794742686.500000 (TOD) = 12091.250000000 (CLOCK_MONOTONIC)",
        )
    )
    assert (header.host, header.captured_wall_us, header.last_us) == ("node-7", 1794742686000000, 12091221046)
    assert header.offset_us == 1794742686_500000 - 12091_250000
    assert header.facts()["cpus"] == 96
    assert header.facts()["perf_cmdline"] == "/usr/bin/perf record -a -g : -F 99"


def test_samples_without_times_say_so() -> None:
    outcome = ImportReport()
    (rows,) = PerfScriptImport(outcome).read([f"apt-get 10397 cycles: \n{CHAIN}\n".encode() * 3])
    assert list(rows.time_us) == [0, 0, 0]
    assert any("no time" in note for note in outcome.notes)


def test_kernel_names_are_missing_only_where_there_is_none() -> None:
    unknown = "\tffffffffa0c01220 [unknown] ([unknown])\n"

    def notes(chain: str) -> str:
        outcome = ImportReport()
        list(PerfScriptImport(outcome).read([f"a 1/1 [000] 1.000000: 1 cycles: \n{chain}\n".encode()]))
        return " ".join(outcome.notes)

    assert "could not read kallsyms" in notes(unknown)
    assert "could not read kallsyms" not in notes(unknown + CHAIN)


def test_memory_without_a_file_has_one_name_everywhere() -> None:
    assert place(b"[unknown]", b"//anon", False) == ("[unknown]", "[anon]", "jit")


MARGIN = """
java 19983 cycles:
ffffffff8103d0ca native_write_msr_safe ([kernel.kallsyms])
7f7241fbe6d8 arrayOopDesc::base(BasicType) const (/opt/jdk/libjvm.so)
7f72432b4e9a start_thread (/lib/x86_64-linux-gnu/libpthread-2.15.so)

add 7 [003] cycles:
7f722d12e1d4 LBusy;::main (/tmp/perf-19982.map)

"""


@pytest.mark.parametrize("limit", [1, 2, 1000])
@pytest.mark.parametrize("piece", [1, 17, 1 << 16])
def test_frames_may_stand_at_the_margin(piece: int, limit: int) -> None:
    """As in a test of FlameGraph's: no times, and the tabs taken out."""
    java, add = parse(MARGIN, piece, limit=limit).samples
    assert list(java.stack) == [
        "start_thread", "arrayOopDesc::base(BasicType) const", "native_write_msr_safe",
    ]  # fmt: skip
    assert (java.comm, java.pid, java.time_us) == ("java", 19983, -1)
    assert (add.comm, add.pid, add.cpu) == ("add", 7, 3)
    assert list(add.stack) == ["LBusy;::main"]


def test_a_process_that_is_called_like_an_address_is_a_process() -> None:
    text = "deadbeef 12 [000] 1.000000: cycles: ffffffff821e81e7 f ([kernel.kallsyms])\n" * 3
    assert [sample.comm for sample in parse(text).samples] == ["deadbeef"] * 3
