"""What a cgroup's path says: whose it is, and which part of it is only a passing number.

normalise() makes one name of all the paths that differ by an id, so that 68,000 dead containers are one line:
container ids, pod uids, session and transient unit numbers, and trailing numbers become "*".
owner() reads the node's systemd unit and slice, the container, the pod and the runtime from a path, for the systemd
and the cgroupfs driver of Docker, containerd, CRI-O, podman, ECS and LXC. A job of Slurm is a container too,
whichever step a process belongs to.

Pure text, no kernel file is read. Cost of normalise(): about 2 us for a new leaf below a known parent, less
for a path that was seen before; of owner(): about 5 us, once a path.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_UNIT_SUFFIX = re.compile(r"\.(?:service|scope|slice|socket|mount|swap|device|timer|path|target|automount)$")

_HAS_DIGIT = re.compile(r"[0-9]")
_PER_USER = re.compile(r"(?:user-\d+\.slice|user(?:-runtime-dir)?@\d+\.service)$")
_TRANSIENT = re.compile(r"(session|run)-(?:[a-z]?\d|r[0-9a-f]).*?((?:\.\w+)?)$")
_UID = r"[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}"
_ID = re.compile(
    rf"{_UID}"
    # Static pods have a plain hash for a uid, and it touches the word.
    r"|(?<=pod)[0-9a-f]{32}(?![0-9a-zA-Z])"
    r"|(?<![0-9a-zA-Z])(?=[a-f]*[0-9])[0-9a-f]{8,64}(?![0-9a-zA-Z])"
    r"|(?<![0-9a-zA-Z])(?=[a-z]*[0-9])[0-9a-z]{25}(?![0-9a-zA-Z])"  # BuildKit
    r"|(?<=\\x2d)[0-9]+(?=\\x2d)"  # libvirt: machine-qemu\x2d3\x2dname.scope
)
_INSTANCE = re.compile(r"@(?:[0-9][0-9a-f:.\-_]*|[0-9a-f]{8,})(?=\.\w+$|$)")
_TRAILING = re.compile(r"(?:([-_.:])[0-9]+(?:[-_.:][0-9]+)*|(?<=[a-zA-Z])[0-9]{3,}|^[0-9]+)((?:\.[a-z]+)?)$")
# z0 to z3999 are one family. Not so units, whose small numbers were chosen by a person (redis6.service), nor machines.
_COUNTED = re.compile(r"(?<=[a-zA-Z])[0-9]+$")
_STARS = re.compile(r"\*\*+")
_CHOSEN = re.compile(r"lxc\.|machine-")
_MOST_NAME = 255
"""Of a directory; a longer one is in no kernel, and where its number begins would be looked for at every character."""


def _without_ids(name: str) -> str:
    if len(name) > _MOST_NAME or not _HAS_DIGIT.search(name) or _PER_USER.match(name):
        return name
    transient = _TRANSIENT.match(name)
    if transient:
        return f"{transient[1]}-*{transient[2]}"
    if "@" in name:
        return _INSTANCE.sub("@*", name)
    name = _TRAILING.sub(_star, _ID.sub("*", name))
    if _UNIT_SUFFIX.search(name) or _CHOSEN.match(name):
        return name
    # What is left of a number may look like an id (BuildKit's have 25 characters): one star for both.
    return _STARS.sub("*", _ID.sub("*", _COUNTED.sub("*", name)))


def _star(match: re.Match[str]) -> str:
    return f"{match[1] or ''}*{match[2]}"


@lru_cache(maxsize=4096)
def _normalise_parent(path: str) -> str:
    return "/".join(map(_without_ids, path.split("/")))


@lru_cache(maxsize=4096)
def normalise(path: str) -> str:
    """The path with everything that is only an id replaced by "*"."""
    head, slash, name = path.rpartition("/")
    return f"{_normalise_parent(head)}/{_without_ids(name)}" if slash else _without_ids(path)


@dataclass(frozen=True, slots=True)
class Owner:
    unit: str | None = None
    """The unit of the system's manager: of /system.slice/foo.service/worker it is foo.service."""
    slice: str | None = None
    container: str | None = None
    pod_uid: str | None = None
    runtime: str | None = None
    """docker, containerd, crio, podman, ecs, lxc, machined, slurm; None where the path does not say."""
    user_unit: str | None = None
    """The unit of a user's own manager, below user@UID.service."""


_POD = re.compile(rf"pod({_UID}|[0-9a-f]{{32}})(?![0-9a-zA-Z])")
_SCOPED = re.compile(
    r"(?:^|[:.])(docker|cri-containerd|crio(?:-conmon)?|libpod(?:-conmon)?|nerdctl)[-:]([0-9a-f]{12,64})"
)
_BARE = re.compile(r"[0-9a-f]{64}$")
_ECS = re.compile(r"[0-9a-f]{32}-[0-9]+$")
_MACHINE = re.compile(r"machine-(.+)\.scope$|systemd-nspawn@(.+)\.service$")
_RUNTIMES = {
    "docker": "docker",
    "cri-containerd": "containerd",
    "nerdctl": "containerd",
    "crio": "crio",
    "crio-conmon": "crio",
    "libpod": "podman",
    "libpod-conmon": "podman",
}
_SLURM = "slurm"
_RUNTIME_DIRECTORIES = {"docker": "docker", "ecs": "ecs", "libpod_parent": "podman", "slurm": _SLURM}
_SLURM_DIRECTORY = re.compile(r"(?:[\w.-]+_)?slurmstepd\.scope$|slurm_[\w.-]+$")
"""One for each slurmd, where several run on a machine."""
_SLURM_JOB = re.compile(r"job_([0-9]{1,12})$")


@lru_cache(maxsize=4096)
def owner(path: str) -> Owner:
    """Whose a cgroup is: the unit of the node's own systemd, and the innermost pod and container.

    A unit is a name with a unit's suffix that has only slices above it: no one but systemd and root makes directories
    there. Any process that may write a subtree chooses the names below a unit or a container, so they are not units."""
    unit = slice_ = container = pod_uid = runtime = user_unit = directory = None
    in_slices = True
    for name in path.split("/"):
        if in_slices and name.endswith(".slice"):
            slice_ = name
        elif name not in ("", ".."):
            is_unit = _UNIT_SUFFIX.search(name) is not None
            if is_unit and unit and unit.startswith("user@") and not name.endswith(".slice") and name != "init.scope":
                user_unit = name
            unit = name if is_unit and in_slices and not name.endswith(".slice") else unit
            in_slices = False
        pod = _POD.search(name)
        pod_uid = pod[1].replace("_", "-") if pod else pod_uid
        directory = _runtime_directory(name) or directory
        container, runtime = _container(name, directory) or (container, runtime)
    return Owner(unit, slice_, container, pod_uid, runtime, user_unit)


_LIKELY = re.compile(r"[0-9a-f]{12}|^lxc\.payload\.|^machine-|^systemd-nspawn@|^job_[0-9]")
_HELPER = re.compile(r"-conmon-|^lxc\.monitor\.")


def container_at(path: str) -> Owner | None:
    """Whose a cgroup is, if it is a container's own and not one inside it or beside it. About 1 us for any other."""
    parent, _, name = path.rpartition("/")
    if not _LIKELY.search(name) or _HELPER.search(name):
        return None
    who = owner(path)
    return who if who.container is not None and owner(parent).container != who.container else None


def containers_in(path: str) -> list[tuple[str, str]]:
    """(path of its cgroup, container) for each container that a path names, the outermost first."""
    directory, found, above = None, [], ""
    for name in path.split("/")[1:]:
        above += f"/{name}"
        directory = _runtime_directory(name) or directory
        if (named := _container(name, directory)) is not None:
            found.append((above, named[0]))
    return found


def _runtime_directory(name: str) -> str | None:
    return _RUNTIME_DIRECTORIES.get(name) or (_SLURM if _SLURM_DIRECTORY.match(name) else None)


def _container(name: str, directory: str | None) -> tuple[str, str | None] | None:
    """(container, runtime) that one part of a path names."""
    scoped = _SCOPED.search(name)
    if scoped:
        return scoped[2], _RUNTIMES[scoped[1]]
    if _BARE.match(name) or (directory == "ecs" and _ECS.match(name)):
        return name, directory if directory != _SLURM else None
    if directory == _SLURM and (job := _SLURM_JOB.match(name)):
        return f"slurm-{job[1]}", _SLURM
    if name.startswith(("lxc.payload.", "lxc.monitor.")):
        return name.split(".", 2)[2], "lxc"
    machine = _MACHINE.match(name)
    return (machine[1] or machine[2], "machined") if machine else None
