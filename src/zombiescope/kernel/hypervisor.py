"""Whether this machine is virtual, and what runs below it.

Sources, each of which may speak for a virtual machine: the flag "hypervisor" of /proc/cpuinfo (x86; set by every
hypervisor that wants to be known), /sys/hypervisor/type (Xen), /proc/device-tree/hypervisor/compatible (arm64 under
KVM or Xen), and the vendor and product of /sys/class/dmi/id.

Cost: four small reads at start; of /proc/cpuinfo only the first processor. Absence: arm64 has no such flag, and
containers may hide /sys; where nothing speaks for either, it is not known (None), which is not bare metal.
"""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.kernel.procfile import at, read_text

_CPUINFO_BYTES = 16_384
"""The first processor; a hundred of them are two hundred kilobytes."""
_LONGEST = 64

_PRODUCTS = {
    "kvm": "KVM",
    "qemu": "QEMU/KVM",
    "standard pc": "QEMU/KVM",
    "openstack": "KVM",
    "google compute engine": "KVM (Google)",
    "vmware": "VMware",
    "virtualbox": "VirtualBox",
    "hvm domu": "Xen",
    "xen": "Xen",
    "bochs": "Bochs",
    "parallels": "Parallels",
    "alibaba cloud ecs": "KVM (Alibaba)",
    "droplet": "KVM (DigitalOcean)",
}
"""As DMI calls virtual machines, in lower case -> what runs below."""


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """`virtual` None: nothing speaks for it or against it. `name` None: not known, or none."""

    virtual: bool | None
    name: str | None = None
    evidence: tuple[str, ...] = ()


def parse_flags(data: bytes) -> bool | None:
    """Whether the first processor has the flag; None where it lists no flags of x86."""
    for line in data.split(b"\n"):
        name, colon, flags = line.partition(b":")
        if colon and name.strip() == b"flags":
            return b"hypervisor" in flags.split()
    return None


def parse_dmi(vendor: str | None, product: str | None) -> tuple[bool | None, str | None]:
    """What the firmware's own description says; None where it names neither a virtual machine nor a known metal one."""
    text = f"{vendor or ''} {product or ''}".lower()
    if vendor == "Amazon EC2":
        return (False, None) if ".metal" in text else (True, "Nitro")
    if (vendor or "") == "Microsoft Corporation" and product == "Virtual Machine":
        return True, "Hyper-V"
    name = next((known for part, known in _PRODUCTS.items() if part in text), None)
    return (True, name) if name else (None, None)


def read(root: str = "/") -> Hypervisor:
    flag = parse_flags(_head(at(root, "proc/cpuinfo")))
    kind = _text(at(root, "sys/hypervisor/type"))
    tree = _text(at(root, "proc/device-tree/hypervisor/compatible"))
    vendor, product = (_text(at(root, f"sys/class/dmi/id/{name}")) for name in ("sys_vendor", "product_name"))
    described, maker = parse_dmi(vendor, product)
    evidence = [
        *(
            ["/proc/cpuinfo: flag hypervisor" if flag else "/proc/cpuinfo: no flag hypervisor"]
            if flag is not None
            else []
        ),
        *([f"/sys/hypervisor/type: {kind}"] if kind else []),
        *([f"/proc/device-tree/hypervisor: {tree}"] if tree else []),
        *([f"DMI: {' '.join(filter(None, (vendor, product)))}"] if vendor or product else []),
    ]
    if flag or kind or tree or described:
        return Hypervisor(True, maker or kind or tree, tuple(evidence))
    bare = flag is False or described is False
    return Hypervisor(False if bare else None, None, tuple(evidence))


def _text(path: str) -> str | None:
    text = read_text(path)
    shown = "".join(letter for letter in text or "" if letter.isprintable()).strip()
    return shown[:_LONGEST] or None


def _head(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(_CPUINFO_BYTES)
    except OSError:
        return b""
