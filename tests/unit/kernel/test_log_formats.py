from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zombiescope.kernel.kmsg import KmsgRecord, parse_console
from zombiescope.kernel.log_formats import FORMATS, classify, event_of
from zombiescope.kernel.log_line import LineFormat

ids = [line_format.name for line_format in FORMATS]


@pytest.mark.parametrize("line_format", FORMATS, ids=ids)
def test_each_sample_is_recognised_as_itself(line_format: LineFormat) -> None:
    known = classify(line_format.sample)
    assert known is not None
    assert (known.name, known.kind, known.severity) == (
        line_format.name,
        line_format.kind,
        line_format.severity,
    )


@pytest.mark.parametrize("line_format", FORMATS, ids=ids)
def test_each_sample_matches_no_other_entry(line_format: LineFormat) -> None:
    others = [f for f in FORMATS if f is not line_format and (line_format.loose or not f.loose)]
    assert [f.name for f in others if f.pattern().match(line_format.sample)] == []


@pytest.mark.parametrize("line_format", FORMATS, ids=ids)
def test_a_line_that_only_quotes_the_sample_is_not_it(line_format: LineFormat) -> None:
    """A process can put text into a kernel line, but not at its beginning."""
    known = classify(f"audit: type=1400 comm=x saying {line_format.sample}")
    assert known is None or known.name != line_format.name or line_format.template.startswith("{")


def test_names_are_unique() -> None:
    assert len(set(ids)) == len(ids)


def test_every_kind_of_the_issue_is_there() -> None:
    kinds = {line_format.kind for line_format in FORMATS}
    assert kinds >= {
        "nic_reset", "nic_tx_timeout", "nic_event", "soft_lockup", "hard_lockup", "rcu_stall", "hung_task",
        "workqueue_hog", "oom_kill", "oom_invoked", "memcg_oom", "conntrack_full", "audit_backlog",
        "netdev_unregister_wait", "slub_alloc_failed", "rt_throttling", "perf_rate_lowered", "hardware_error",
        "gpu_xid", "page_allocation_failure", "fs_error", "io_error", "link_down", "link_up", "segfault",
        "kernel_bug", "kernel_panic",
    }  # fmt: skip


def test_fields_of_the_founding_case() -> None:
    known = classify(
        "ena 0000:20:03.0 eth0: TX q 5 is paused for too long (threshold 5000000). "
        "Time since last napi 6596000 usec. napi scheduled: 1"
    )
    assert known is not None
    assert known.fields == {
        "driver": "ena",
        "bus": "0000:20:03.0",
        "interface": "eth0",
        "queue": 5,
        "threshold_us": 5_000_000,
        "usec_since_napi": 6_596_000,
        "napi_scheduled": 1,
        "reset_reason": "os_netdev_wd",
    }


def test_ena_2_17_0_prints_the_cpu_where_it_says_queue() -> None:
    known = classify("ena 0000:20:03.0 eth0: [2/2] qid: 39, napi CPU: 7")
    assert known is not None
    assert (known.fields["cpu"], known.fields["queue"]) == (39, 7)


def test_device_without_interface_name_and_device_being_removed() -> None:
    bare = classify("ena 0000:20:03.0: Device reset completed successfully")
    leaving = classify("ena 0000:20:03.0 eth0 (unregistering): Trigger reset is on")
    assert bare is not None
    assert leaving is not None
    assert "interface" not in bare.fields
    assert leaving.fields["interface"] == "eth0"


def test_a_wording_of_ena_that_is_not_in_the_table_is_still_a_timeout() -> None:
    known = classify("ena 0000:20:03.0 eth0: TX q 5 is paused, says driver 3.1")
    assert known is not None
    assert (known.kind, known.fields["queue"]) == ("nic_tx_timeout", 5)


def test_a_command_name_with_anything_in_it() -> None:
    known = classify("INFO: task kworker/u8:3+flush: [1]:77 blocked for more than 120 seconds.")
    assert known is not None
    assert (known.fields["comm"], known.fields["pid"]) == ("kworker/u8:3+flush: [1]", 77)


@pytest.mark.parametrize(
    "text",
    [
        "usb 1-1: new high-speed USB device number 2 using xhci_hcd",
        "IPv6: ADDRCONF(NETDEV_CHANGE): veth1234: link becomes ready",
        "ena 0000:20:03.0: Elastic Network Adapter (ENA) v2.11.0g",
        "watchdog: Disabling watchdog on nohz_full cores by default",
        "",
        " ",
        "INFO:",
    ],
)
def test_ordinary_lines_are_not_in_the_table(text: str) -> None:
    assert classify(text) is None


def record(text: str, level: int | None = 6, facility: int | None = 0) -> KmsgRecord:
    return KmsgRecord(level, facility, 1, 1, text)


def test_warnings_and_worse_become_events_and_the_rest_does_not() -> None:
    assert event_of(record("hello", level=6)) is None
    warning, critical = event_of(record("hello", level=4)), event_of(record("hello", level=2))
    assert warning is not None
    assert critical is not None
    assert (warning.kind, warning.source) == ("kernel_log", "kmsg")
    assert critical.severity == "critical"


@pytest.mark.parametrize("level", [3, 4])
def test_a_warning_that_nobody_has_listed_is_kept_and_alarms_nobody(level: int) -> None:
    event = event_of(record("memory.oom_control is deprecated and will be removed", level=level))
    assert event is not None
    assert event.severity == "info"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("NVRM: Xid (PCI:0000:81:00): 79, pid=1122, name=python3, GPU has fallen off the bus.",
         {"gpu": "0000:81:00", "xid": 79, "pid": 1122, "comm": "python3"}),
        ("NVRM: Xid (PCI:0000:81:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
         {"gpu": "0000:81:00", "xid": 79}),
        ("NVRM: Xid (PCI:0000:81:00): 79, GPU has fallen off the bus.", {"gpu": "0000:81:00", "xid": 79}),
        ("NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:02): 31, pid=7, name=a, b, MMU Fault",
         {"gpu": "0000:01:00", "gpu_instance": 5, "compute_instance": 2, "xid": 31, "pid": 7, "comm": "a"}),
        ("NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.", {"gpu": "0000:18:00.0", "xid": 79}),
    ],
)  # fmt: skip
def test_an_xid_says_which_gpu_which_code_and_whose(text: str, fields: dict[str, object]) -> None:
    known = classify(text)
    assert known is not None
    assert known.kind == "gpu_xid"
    assert {name: value for name, value in known.fields.items() if name != "message"} == fields


def test_a_known_line_is_an_event_at_any_level() -> None:
    event = event_of(record("gve 0000:00:04.0 eth0: Timeout on tx queue, 3", level=6))
    assert event is not None
    assert (event.kind, event.known, event.fields["queue"]) == ("nic_tx_timeout", "gve.tx-timeout", 3)


def test_a_process_cannot_fake_a_reset() -> None:
    event = event_of(record("ena 0000:20:03.0 eth0: Transmit time out", level=3, facility=1))
    assert event is not None
    assert (event.kind, event.severity, event.source, event.fields) == ("kernel_log", "info", "kmsg-user", {})


def test_where_the_writer_cannot_be_told_the_event_says_so() -> None:
    console = parse_console(b"ena 0000:20:03.0 eth0: Transmit time out")
    assert console is not None
    event = event_of(console, "printk:console")
    assert event is not None
    assert (event.kind, event.source, event.fields["writer_unknown"]) == (
        "nic_tx_timeout",
        "printk:console",
        1,
    )


@given(st.text(max_size=400))
def test_classify_never_raises(text: str) -> None:
    classify(text)


pieces = sorted({piece for f in FORMATS for piece in f.sample.split(" ")})


@given(st.lists(st.sampled_from(pieces), max_size=60).map(" ".join))
def test_classify_never_raises_on_pieces_of_real_lines(text: str) -> None:
    known = classify(text)
    assert known is None or known.name in ids


def _worst_lines(line_format: LineFormat, length: int) -> list[str]:
    """A real line over and over, and a real line with its middle over and over: whatever could end in
    several places finds its end everywhere, and the line as a whole still does not match."""
    sample = line_format.sample
    middle = sample[len(sample) // 4 :]
    times = 1 + length // len(middle)
    return [(sample * times)[:length] + "\0", (sample + middle * times)[:length] + "\0"]


def _cost_s(length: int) -> float:
    """The least time of several runs over the worst lines of that length for every entry."""
    lines = [(f.pattern(), text) for f in FORMATS for text in _worst_lines(f, length)]
    best = float("inf")
    for _ in range(7):
        begin = time.process_time()
        for pattern, text in lines:
            pattern.match(text)
        best = min(best, time.process_time() - begin)
    return best


def test_the_cost_grows_with_the_length_and_no_faster() -> None:
    short, long = _cost_s(2_000), _cost_s(20_000)
    assert long < short * 40, f"ten times the length costs {long / short:.0f} times as much"
