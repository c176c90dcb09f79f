"""No parser of kernel text raises, whatever the text; what is cut off reads like what came before the cut."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zombiescope.kernel import (
    cgroup,
    cgroup_census,
    cgroup_leaf,
    cgroup_path,
    cpu,
    dentry,
    host,
    interrupts,
    kconfig,
    loadavg,
    meminfo,
    netdev,
    pressure,
    privileges,
    process,
    schedstat,
    snmp,
    softirqs,
    softnet,
    stat,
    vmstat,
)

FIXTURES = Path(__file__).parents[2] / "fixtures"

Parser = Callable[[bytes], object]

PARSERS: dict[str, tuple[Parser, str]] = {
    "stat": (stat.parse, "proc/stat"),
    "softirqs": (softirqs.parse, "proc/softirqs"),
    "interrupts": (interrupts.parse, "proc/interrupts"),
    "softnet": (softnet.parse, "proc/net/softnet_stat"),
    "schedstat": (schedstat.parse, "proc/schedstat"),
    "schedstat task": (schedstat.parse_task, "proc/10/schedstat"),
    "pressure": (pressure.parse, "proc/pressure/memory"),
    "vmstat": (vmstat.parse, "proc/vmstat"),
    "meminfo": (meminfo.parse, "proc/meminfo"),
    "snmp": (snmp.parse, "proc/net/snmp"),
    "netstat": (snmp.parse, "proc/net/netstat"),
    "netdev": (netdev.parse, "proc/net/dev"),
    "loadavg": (loadavg.parse, "proc/loadavg"),
    "dentry": (dentry.parse, "proc/sys/fs/dentry-state"),
    "cgroups": (cgroup.parse_cgroups, "proc/cgroups"),
    "census v1": (cgroup_census.parse_v1, "proc/cgroups"),
    "census v2": (cgroup_census.parse_v2, "sys/fs/cgroup/cgroup.stat"),
    "mountinfo": (cgroup.parse_mountinfo, "proc/self/mountinfo"),
    "membership": (cgroup.parse_membership, "proc/self/cgroup"),
    "flat": (cgroup_leaf.parse_flat, "sys/fs/cgroup/cgroup.stat"),
    "process stat": (process.parse_stat, "proc/4242/stat"),
    "cmdline": (process.parse_cmdline, "proc/4242/cmdline"),
    "status": (privileges.parse, "proc/self/status"),
    "cpulist": (cpu.parse_list, "sys/devices/system/cpu/possible"),
    "config": (kconfig.parse, "boot/config-5.4.0-1103-aws"),
    "os-release": (host.parse_os_release, "etc/os-release"),
    "instance-data": (host.parse_instance_data, "run/cloud-init/instance-data.json"),
}

LINES_ARE_WHOLE_OR_ABSENT = {"stat", "softirqs", "interrupts", "schedstat", "netdev", "cgroups", "membership"}
"""Parsers of tables, in which a row must never be read from a part of its line."""


def _samples(path: str) -> list[bytes]:
    return [file.read_bytes() for node in sorted(FIXTURES.iterdir()) if (file := node / path).is_file()]


@pytest.mark.parametrize("name", PARSERS)
def test_every_parser_has_a_fixture(name: str) -> None:
    assert _samples(PARSERS[name][1])


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.binary(max_size=400))
@settings(max_examples=60, deadline=None)
def test_arbitrary_bytes(name: str, data: bytes) -> None:
    PARSERS[name][0](data)


@pytest.mark.parametrize("name", PARSERS)
@given(choice=st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_text(name: str, choice: st.DataObject) -> None:
    # GIVEN real text with some bytes replaced and the end cut off
    parse, path = PARSERS[name]
    text = bytearray(choice.draw(st.sampled_from(_samples(path))))
    for _ in range(choice.draw(st.integers(0, 8))):
        text[choice.draw(st.integers(0, len(text) - 1))] = choice.draw(st.sampled_from(b"\n\t :/-x0\xff\0"))
    # THEN it is parsed as far as it goes
    parse(bytes(text[: choice.draw(st.integers(0, len(text)))]))


@pytest.mark.parametrize("name", sorted(LINES_ARE_WHOLE_OR_ABSENT))
@given(choice=st.data())
@settings(max_examples=60, deadline=None)
def test_a_cut_anywhere_reads_as_the_whole_lines_before_it(name: str, choice: st.DataObject) -> None:
    parse, path = PARSERS[name]
    text = choice.draw(st.sampled_from(_samples(path)))
    cut = text[: choice.draw(st.integers(0, len(text)))]
    assert parse(cut) == parse(cut[: cut.rfind(b"\n") + 1])


@given(st.lists(st.binary(max_size=300), max_size=6))
@settings(max_examples=100, deadline=None)
def test_interrupts_survive_any_sequence(texts: list[bytes]) -> None:
    kept = interrupts.Interrupts()
    for text in texts:
        for _, _, delta in kept.update(text):
            assert delta > 0
    kept.devices()


@given(choice=st.data())
@settings(max_examples=60, deadline=None)
def test_interrupts_survive_damaged_tables(choice: st.DataObject) -> None:
    kept = interrupts.Interrupts()
    samples = _samples("proc/interrupts")
    for _ in range(4):
        text = bytearray(choice.draw(st.sampled_from(samples)))
        text[choice.draw(st.integers(0, len(text) - 1))] = choice.draw(st.sampled_from(b"\n 9x:"))
        assert all(delta > 0 for _, _, delta in kept.update(bytes(text)))


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_path_has_a_name_and_an_owner(path: str) -> None:
    assert cgroup_path.normalise(path).count("/") == path.count("/")
    cgroup_path.owner(path)


@given(
    st.lists(
        st.from_regex(r"[a-z]{1,8}[-_]?[0-9a-f]{0,64}(\.scope|\.slice|\.service)?", fullmatch=True),
        max_size=5,
    )
)
@settings(max_examples=300, deadline=None)
def test_a_normalised_path_stays_as_it_is(parts: list[str]) -> None:
    name = cgroup_path.normalise("/" + "/".join(parts))
    assert cgroup_path.normalise(name) == name


@given(st.binary(max_size=200))
def test_printable_is_printable(data: bytes) -> None:
    assert process.printable(data).isprintable()
