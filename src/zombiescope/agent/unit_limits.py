"""What the systemd unit takes away from the configuration, and the drop-in that gives it back.

The packaged unit refuses every packet but those of the loopback (IPAddressDeny=any), has a /tmp of its own
(PrivateTmp=yes) and writes into its own directory only (ProtectSystem=strict). A webhook, a scrape from elsewhere, an
archive or Ray's logs need a line each. The unit is read with its drop-ins, as systemd does; where none is installed, as
in a pod, there is nothing to compare with.

An address that is a name gets IPAddressAllow=any: systemd filters by address, and those of a name change.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from zombiescope.base import listen_address
from zombiescope.kernel.namespaces import node_root
from zombiescope.node.systemd import unit_files
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files import Unit

UNIT = "zombiescope.service"
STATE = "/var/lib/zombiescope"
RAY = "/tmp/ray"  # noqa: S108 - Ray's own place
ANY = "any"
_LOOPBACK = ("localhost", "127.0.0.0/8", "::1/128")
_YES = frozenset({"1", "yes", "true", "on"})


@dataclass(frozen=True, slots=True)
class Limit:
    """A setting that the unit defeats: which, what happens, and the line of the drop-in."""

    key: str
    what: str
    needs: str

    def __str__(self) -> str:
        return f"{self.key}: {self.what}"


def installed(root: str = "/") -> Unit | None:
    """The agent's unit with its drop-ins; None where there is none, or it cannot be read."""
    try:
        with Root(root) as opened:
            return unit_files.read(opened).unit(UNIT)
    except OSError:
        return None


def is_on_node(path: str) -> bool:
    """Also from inside the unit, whose /tmp is its own."""
    return os.path.exists(node_root().rstrip("/") + path)  # noqa: PTH110 - a path below /proc/1/root is not to be resolved


def limits(sections: Mapping[str, Any], unit: Unit, exists: Callable[[str], bool] = is_on_node) -> list[Limit]:
    """In the order of the configuration's sections."""
    return [*_network(sections, unit), *_directories(sections, unit), *_ray(sections, unit, exists)]


def drop_in(found: list[Limit]) -> str:
    """One file for all of them."""
    lines = dict.fromkeys(one.needs for one in found)
    if f"IPAddressAllow={ANY}" in lines:
        lines = {line: None for line in lines if not line.startswith("IPAddressAllow=") or line.endswith(f"={ANY}")}
    return "".join(f"{line}\n" for line in ("[Service]", *lines))


def _network(sections: Mapping[str, Any], unit: Unit) -> Iterator[Limit]:
    if ANY not in unit.words("Service", "IPAddressDeny"):
        return
    allowed = unit.words("Service", "IPAddressAllow")
    listens = getattr(sections.get("metrics"), "listen", None)
    if listens and sections["metrics"].enabled and not _is_loopback(listens) and not _beside_loopback(allowed):
        what = f"{UNIT} drops every packet from other machines (IPAddressDeny=any): Prometheus gets no answer"
        yield Limit("metrics.listen", what, "IPAddressAllow=10.0.0.0/8")
    for key, address in _addresses(sections):
        needs = _refused(address, allowed)
        if needs is not None:
            yield Limit(key, f"{UNIT} drops every packet to {address} (IPAddressDeny=any)", f"IPAddressAllow={needs}")


def _addresses(sections: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Key -> host, of everything that is asked or sent to."""
    for key in ("webhook.url", "profiles.url", "ray.dashboard", "shipping.target"):
        value = _value(sections, key)
        if value and "://" in value:
            yield key, urlsplit(value).hostname or value
    file = _value(sections, "webhook.url_file")
    if file:
        yield "webhook.url_file", _host_in(file)
    if getattr(sections.get("kubernetes"), "enabled", False):
        yield "kubernetes.enabled", os.environ.get("KUBERNETES_SERVICE_HOST") or "the API server"


def _value(sections: Mapping[str, Any], key: str) -> str | None:
    section, _, name = key.partition(".")
    value = getattr(sections.get(section), name, None)
    return value if isinstance(value, str) else None


def _host_in(file: str) -> str:
    """Of an address that is a secret; its path is never shown."""
    try:
        return urlsplit(Path(file).read_text("utf-8").strip()).hostname or "its address"
    except (OSError, ValueError):
        return "its address"


def _refused(host: str, allowed: list[str]) -> str | None:
    """What IPAddressAllow= has to say; None where the unit lets it through."""
    if host == "localhost" or ANY in allowed:
        return None
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ANY
    networks = [network for word in (*_LOOPBACK, *allowed) if (network := _network_of(word)) is not None]
    if any(address in network for network in networks if network.version == address.version):
        return None
    return str(address)


def _network_of(word: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(word, strict=False)
    except ValueError:
        return None


def _is_loopback(listens: str) -> bool:
    try:
        return listen_address.parse(listens, 0).loopback
    except ValueError:
        return True  # said as a mistake of its own


def _beside_loopback(allowed: list[str]) -> bool:
    return any(word not in _LOOPBACK for word in allowed)


def _directories(sections: Mapping[str, Any], unit: Unit) -> Iterator[Limit]:
    protects = unit.last("Service", "ProtectSystem")
    if protects is None or protects.value.lower() != "strict":
        return
    own = [f"/var/lib/{name}" for name in unit.words("Service", "StateDirectory")]
    writable = [path.lstrip("-+") for path in unit.words("Service", "ReadWritePaths")]
    target = _value(sections, "shipping.target")
    recorder = sections.get("recorder")
    for key, place in (("recorder.dir", getattr(recorder, "dir", None)), ("shipping.target", target)):
        if not place or "://" in place or not place.startswith("/"):
            continue
        if not any(Path(place).is_relative_to(each) for each in (*own, *writable)):
            yield Limit(key, f"{place} is read-only to {UNIT} (ProtectSystem=strict)", f"ReadWritePaths={place}")


def _ray(sections: Mapping[str, Any], unit: Unit, exists: Callable[[str], bool]) -> Iterator[Limit]:
    section = sections.get("ray")
    private = unit.last("Service", "PrivateTmp")
    if not getattr(section, "enabled", False) or private is None or private.value.lower() not in _YES:
        return
    bound = [word.lstrip("-+").partition(":")[0] for key in ("BindReadOnlyPaths", "BindPaths")
             for word in unit.words("Service", key)]  # fmt: skip
    if exists(RAY) and not any(Path(RAY).is_relative_to(each) for each in bound):
        what = f"{UNIT} has its own /tmp (PrivateTmp=yes): Ray's logs in {RAY} are not visible"
        yield Limit("ray.enabled", what, f"BindReadOnlyPaths=-{RAY}")
