"""What this node is: name, kernel, boot, operating system, and where in a cloud it runs.

Sources: uname(2), /proc/sys/kernel/{hostname,random/boot_id}, /proc/cmdline, /etc/os-release,
/sys/class/dmi/id, and the metadata that cloud-init left in /run/cloud-init/instance-data.json (nothing is
asked over the network). labels holds zone, image and instance_type where a file has them.

In a pod the root is the image's, not the node's: there files are read below /proc/1/root, which needs the host's PID
namespace and CAP_SYS_PTRACE.

Cost: a few small files, read at start. Absence: None, or a label that is missing. cloud-init redacts what it
calls sensitive for readers other than root; such values are treated as absent.
"""

import os
import re
from dataclasses import dataclass
from typing import Any

from zombiescope.base import json as _json
from zombiescope.kernel import namespaces
from zombiescope.kernel.procfile import at, read_file, read_text

_CONSOLE = re.compile(r"(?:^|\s)console=(\S+)")
_OS_RELEASE = ("usr/lib/os-release", "etc/os-release")
_INSTANCE_DATA = ("run/cloud-init/instance-data-sensitive.json", "run/cloud-init/instance-data.json")
_REDACTED = "redacted for non-root user"
_EC2 = "Amazon EC2"

_CLOUD_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "zone": (
        ("v1", "availability_zone"),
        ("ds", "meta_data", "placement", "availability-zone"),
        ("ds", "meta_data", "imds", "compute", "zone"),
        ("ds", "meta_data", "imds", "compute", "location"),
    ),
    "image": (
        ("ds", "meta_data", "ami-id"),
        ("ds", "meta_data", "ami_id"),
        ("ds", "dynamic", "instance-identity", "document", "imageId"),
        ("ds", "meta_data", "imds", "compute", "storageProfile", "imageReference", "id"),
        ("ds", "meta_data", "imds", "compute", "storageProfile", "imageReference", "sku"),
    ),
    "instance_type": (
        ("ds", "meta_data", "instance-type"),
        ("ds", "meta_data", "instance_type"),
        ("ds", "meta_data", "imds", "compute", "vmSize"),
    ),
}
"""Label -> where clouds keep it, the most specific place first."""


@dataclass(frozen=True, slots=True)
class Host:
    hostname: str
    release: str
    version: str
    machine: str
    boot_id: str | None
    os_id: str | None
    os_version: str | None
    os_name: str | None
    consoles: tuple[str, ...]
    """console= of the command line; a serial one makes long kernel messages slow."""
    vendor: str | None
    product: str | None
    labels: dict[str, str]


def parse_os_release(data: bytes) -> dict[str, str]:
    """NAME=value lines, quotes taken off."""
    found: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        name, equals, value = line.partition("=")
        if equals and name.isidentifier():
            found[name] = value.strip().strip("\"'")
    return found


def parse_instance_data(data: bytes) -> dict[str, str]:
    """The labels in cloud-init's JSON; empty where it is none."""
    try:
        document: Any = _json.loads(data)
    except ValueError:
        return {}
    found = {label: _first(document, keys) for label, keys in _CLOUD_KEYS.items()}
    return {label: value for label, value in found.items() if value}


def _first(document: Any, places: tuple[tuple[str, ...], ...]) -> str | None:
    for keys in places:
        value = document
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str) and value and value != _REDACTED:
            return value
    return None


def read(root: str = "/") -> Host:
    name = os.uname()
    system = _os_release(root)
    vendor = read_text(at(root, "sys/class/dmi/id/sys_vendor"))
    product = read_text(at(root, "sys/class/dmi/id/product_name"))
    return Host(
        hostname=read_text(at(root, "proc/sys/kernel/hostname")) or name.nodename,
        release=read_text(at(root, "proc/sys/kernel/osrelease")) or name.release,
        version=read_text(at(root, "proc/sys/kernel/version")) or name.version,
        machine=name.machine,
        boot_id=read_text(at(root, "proc/sys/kernel/random/boot_id")),
        os_id=system.get("ID"),
        os_version=system.get("VERSION_ID"),
        os_name=system.get("PRETTY_NAME"),
        consoles=tuple(_CONSOLE.findall(read_text(at(root, "proc/cmdline")) or "")),
        vendor=vendor,
        product=product,
        labels=_labels(root, system, vendor, product),
    )


def _node_file(root: str, path: str) -> bytes | None:
    """A file of the node's root; nothing of an image's, which says nothing about the node."""
    if namespaces.hides_node_root(root):
        return None
    if namespaces.in_host("mnt", root) is False and os.access(at(root, "proc/1/root"), os.F_OK):
        return read_file(at(root, f"proc/1/root/{path}"))
    return read_file(at(root, path))


def _os_release(root: str) -> dict[str, str]:
    texts = (_node_file(root, path) for path in _OS_RELEASE)
    return next((parse_os_release(text) for text in texts if text is not None), {})


def _labels(root: str, system: dict[str, str], vendor: str | None, product: str | None) -> dict[str, str]:
    texts = (_node_file(root, path) for path in _INSTANCE_DATA)
    labels = next((parse_instance_data(text) for text in texts if text is not None), {})
    image = "-".join(filter(None, (system.get("IMAGE_ID"), system.get("IMAGE_VERSION"))))
    if image:
        labels.setdefault("image", image)
    if vendor == _EC2 and product:
        labels.setdefault("instance_type", product)
    return labels
