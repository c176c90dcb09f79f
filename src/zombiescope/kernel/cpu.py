"""/sys/devices/system/cpu: which CPUs there are, and how they sit together.

Fields: the online, possible and offline lists; for each online CPU its package, core, the CPUs of the
same core (hyper-threads) and its NUMA node; the nohz_full and isolated lists.

Cost: the lists are one short line each and cheap enough to watch every tick, which is how hotplug is
noticed; the topology is five files a CPU and is read at start and after a hotplug. Absence: no sysfs
(some containers): None, or an empty topology. A CPU that goes offline loses its topology directory.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from zombiescope.kernel.procfile import at, names_in, number, read_file, read_int

_SYSTEM_CPU = "sys/devices/system/cpu"
_HIGHEST = 1 << 16


@dataclass(frozen=True, slots=True)
class CpuPlace:
    cpu: int
    package: int | None
    core: int | None
    siblings: tuple[int, ...]
    numa_node: int | None


def parse_list(data: bytes) -> tuple[int, ...]:
    """The numbers of a cpulist such as "0-3,8"; parts that are no range are left out."""
    numbers: list[int] = []
    for part in data.split(b","):
        first, dash, last = part.strip().partition(b"-")
        low, high = number(first), number(last if dash else first)
        if low is not None and high is not None:
            numbers.extend(range(low, min(high, _HIGHEST) + 1))
    return tuple(numbers)


def format_list(cpus: Iterable[int]) -> str:
    """As the kernel prints it: "0-3,8"."""
    spans: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if spans and spans[-1][1] == cpu - 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in spans)


def _list(root: str, name: str) -> tuple[int, ...] | None:
    data = read_file(at(root, f"{_SYSTEM_CPU}/{name}"))
    return None if data is None else parse_list(data)


def online(root: str = "/") -> tuple[int, ...] | None:
    return _list(root, "online")


def possible(root: str = "/") -> tuple[int, ...] | None:
    return _list(root, "possible")


def offline(root: str = "/") -> tuple[int, ...] | None:
    return _list(root, "offline")


def nohz_full(root: str = "/") -> tuple[int, ...] | None:
    """CPUs whose tick stops while one task runs; None where the kernel cannot do that."""
    return _list(root, "nohz_full")


def isolated(root: str = "/") -> tuple[int, ...] | None:
    return _list(root, "isolated")


def numa_nodes(root: str = "/") -> dict[int, tuple[int, ...]]:
    """NUMA node -> its CPUs; empty on a kernel without NUMA."""
    nodes = at(root, "sys/devices/system/node")
    found: dict[int, tuple[int, ...]] = {}
    for name in names_in(nodes) or ():
        if name.startswith("node") and name[4:].isdecimal():
            found[int(name[4:])] = parse_list(read_file(f"{nodes}/{name}/cpulist") or b"")
    return dict(sorted(found.items()))


def topology(root: str = "/") -> tuple[CpuPlace, ...]:
    """The place of each online CPU."""
    node_of = {cpu: node for node, cpus in numa_nodes(root).items() for cpu in cpus}
    return tuple(_place(root, cpu, node_of.get(cpu)) for cpu in online(root) or ())


def _place(root: str, cpu: int, numa_node: int | None) -> CpuPlace:
    directory = at(root, f"{_SYSTEM_CPU}/cpu{cpu}/topology")
    siblings = parse_list(read_file(f"{directory}/thread_siblings_list") or b"")
    return CpuPlace(
        cpu=cpu,
        package=read_int(f"{directory}/physical_package_id"),
        core=read_int(f"{directory}/core_id"),
        siblings=siblings or (cpu,),
        numa_node=numa_node,
    )
