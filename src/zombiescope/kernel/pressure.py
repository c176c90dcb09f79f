"""/proc/pressure/{cpu,memory,io,irq} and the *.pressure files of a cgroup2: time lost by waiting.

Fields: "some" (at least one task waited) and "full" (all non-idle tasks waited at once): the total in
microseconds, exact at any interval, and the kernel's ten-second average in percent, kept as a ratio.

cpu has a "full" line since v5.13 (system-wide it is always 0), irq has only "full" and came with v6.1
(52b1364ba0b1). Cost: the read aggregates the per-CPU buckets, at most every two seconds for the averages.

Absence: CONFIG_PSI off, psi=0 or a distribution that needs psi=1 (the file is missing, or the read
answers EOPNOTSUPP). Either is None; ProcFile.why says which.
"""

from dataclasses import dataclass

from zombiescope.kernel.procfile import at, number, read_file

RESOURCES = ("cpu", "memory", "io", "irq")


@dataclass(frozen=True, slots=True)
class Pressure:
    some_us: int | None
    full_us: int | None
    some_avg10_ratio: float | None
    full_avg10_ratio: float | None


def _line(line: bytes) -> tuple[int | None, float | None]:
    total = avg10 = None
    for field in line.split()[1:]:
        name, _, value = field.partition(b"=")
        if name == b"total":
            total = number(value)
        elif name == b"avg10" and value.replace(b".", b"", 1).isdigit():
            avg10 = round(float(value) / 100, 4)
    return total, avg10


def parse(data: bytes) -> Pressure:
    """What is whole in the file's text; a missing line or field is None."""
    lines = {line[:4]: line for line in data[: data.rfind(b"\n") + 1].split(b"\n")}
    some_us, some_avg10 = _line(lines.get(b"some", b""))
    full_us, full_avg10 = _line(lines.get(b"full", b""))
    return Pressure(some_us, full_us, some_avg10, full_avg10)


def read(root: str = "/") -> dict[str, Pressure | None]:
    """Every resource; None for one that this kernel does not account."""
    files = {name: read_file(at(root, f"proc/pressure/{name}")) for name in RESOURCES}
    return {name: None if data is None else parse(data) for name, data in files.items()}


def of_cgroup(directory: str) -> dict[str, Pressure]:
    """The resources that the cgroup's own files account; none on cgroup v1, with PSI off, or with cgroup.pressure 0."""
    files = {name: read_file(f"{directory}/{name}.pressure") for name in RESOURCES}
    return {name: parse(data) for name, data in files.items() if data}
