"""Whether a machine is virtual, from what its files say; damaged or hostile ones say nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zombiescope.kernel import hypervisor
from zombiescope.kernel.hypervisor import parse_dmi, parse_flags

X86 = b"processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu vme %s lahf_lm\nbugs\t:\n"
ARM = b"processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm\n"


def machine(root: Path, cpuinfo: bytes, **files: str) -> str:
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_bytes(cpuinfo)
    for name, text in files.items():
        path = root / {"type": "sys/hypervisor/type", "tree": "proc/device-tree/hypervisor/compatible"}.get(
            name, f"sys/class/dmi/id/{name}"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("cpuinfo", "files", "virtual", "name"),
    [
        (X86 % b"hypervisor", {"sys_vendor": "QEMU", "product_name": "Standard PC"}, True, "QEMU/KVM"),
        (X86 % b"hypervisor", {}, True, None),
        (X86 % b"", {"sys_vendor": "Dell Inc.", "product_name": "PowerEdge R750"}, False, None),
        (X86 % b"", {"sys_vendor": "Amazon EC2", "product_name": "m5.metal"}, False, None),
        (X86 % b"hypervisor", {"sys_vendor": "Amazon EC2", "product_name": "p4d.24xlarge"}, True, "Nitro"),
        (X86 % b"", {"type": "xen\n"}, True, "xen"),
        (ARM, {}, None, None),
        (ARM, {"tree": "linux,kvm\0"}, True, "linux,kvm"),
        (ARM, {"sys_vendor": "Amazon EC2", "product_name": "c7g.metal"}, False, None),
        (b"", {"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine"}, True, "Hyper-V"),
    ],
)
def test_what_a_machine_is(
    tmp_path: Path, cpuinfo: bytes, files: dict[str, str], virtual: bool | None, name: str | None
) -> None:
    found = hypervisor.read(machine(tmp_path, cpuinfo, **files))
    assert (found.virtual, found.name) == (virtual, name)


def test_a_machine_without_any_of_it_is_not_known(tmp_path: Path) -> None:
    assert hypervisor.read(str(tmp_path)) == hypervisor.Hypervisor(None)


def test_the_firmware_cannot_fill_the_node_file(tmp_path: Path) -> None:
    root = machine(tmp_path, b"x" * 1_000_000, sys_vendor="QEMU\x1b[31m" + "a" * 5000, product_name="b" * 5000)
    found = hypervisor.read(root)
    assert sum(map(len, found.evidence)) < 300
    assert all(text.isprintable() for text in found.evidence)


@given(st.binary(max_size=300), st.text(max_size=40), st.text(max_size=40))
def test_anything_may_stand_there(data: bytes, vendor: str, product: str) -> None:
    assert parse_flags(data) in (True, False, None)
    assert parse_dmi(vendor, product)[0] in (True, False, None)
