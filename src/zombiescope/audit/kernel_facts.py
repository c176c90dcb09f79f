"""The kernel of a node, or the kernels of an image: releases, command line, sysctls, and where memory is accounted.

Where /proc says so it is the running kernel. An image has none there: its kernels are the directories of
/lib/modules, its command line stands in the files of its boot loader, its sysctls in sysctl.d, and the hierarchy of
memory follows from the command line or from what the distribution's systemd mounts by default.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from zombiescope.audit.catalogue import HierarchyDefault, Kernel
from zombiescope.audit.finding import EvidenceLine
from zombiescope.kernel import cgroup
from zombiescope.kernel.host import parse_os_release
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files.load_path import conf_files

_GRUB = ("/etc/default/grub", "/etc/default/grub.d")
_GRUB_KEYS = re.compile(r"\s*(?:export\s+)?(GRUB_CMDLINE_LINUX(?:_DEFAULT)?)\s*=\s*(.*)")
_BOOT_LINES = re.compile(r"\s*(?:linux|linuxefi|linux16|options|APPEND)\s+(.*)")
_SYSCTL = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
_RELEASE = re.compile(r"\d+\.\d+")


@dataclass(frozen=True, slots=True)
class KernelFacts:
    running: bool
    releases: tuple[tuple[str, EvidenceLine], ...]
    words: tuple[tuple[str, EvidenceLine], ...]
    """Of the command line, in order; the last of several wins."""
    memory_hierarchy: int | None
    """1 or 2; None where it cannot be seen."""
    memory_evidence: EvidenceLine | None
    os: dict[str, str] = field(default_factory=dict)
    sysctls: dict[str, tuple[str, EvidenceLine]] = field(default_factory=dict)

    def covered(self, entry: Kernel) -> list[tuple[str, EvidenceLine]]:
        """The releases that an entry of the catalogue is about."""
        return [(release, where) for release, where in self.releases if entry.covers(release)]

    def values(self, key: str) -> list[tuple[str, EvidenceLine]]:
        """Every KEY=value of the command line."""
        start = f"{key}="
        return [(word[len(start) :], where) for word, where in self.words if word.startswith(start)]

    def has(self, word: str) -> EvidenceLine | None:
        return next((where for each, where in self.words if each == word), None)


def read(root: Root, defaults: tuple[HierarchyDefault, ...], sysctls: tuple[str, ...]) -> KernelFacts:
    """`sysctls` are those that a rule asks for."""
    release = root.text("/proc/sys/kernel/osrelease")
    system = _os_release(root)
    if release:
        words = _running_words(root)
        where = EvidenceLine("/proc/sys/kernel/osrelease", None, release)
        values = {name: value for name in sysctls if (value := _running_sysctl(root, name)) is not None}
        version, evidence = _running_hierarchy(root)
        return KernelFacts(True, ((release, where),), words, version, evidence, system, values)
    releases = _installed(root)
    words = _image_words(root)
    version, evidence = _image_hierarchy(words, system, defaults) if releases else (None, None)
    return KernelFacts(False, releases, words, version, evidence, system, _image_sysctls(root))


def _os_release(root: Root) -> dict[str, str]:
    data = root.read("/etc/os-release") or root.read("/usr/lib/os-release") or b""
    return parse_os_release(data)


def _running_words(root: Root) -> tuple[tuple[str, EvidenceLine], ...]:
    text = root.text("/proc/cmdline") or ""
    return tuple((word, EvidenceLine("/proc/cmdline", 1, word)) for word in text.split())


def _running_sysctl(root: Root, name: str) -> tuple[str, EvidenceLine] | None:
    path = f"/proc/sys/{name.replace('.', '/')}"
    value = root.text(path)
    return None if value is None else (value, EvidenceLine(path, 1, value))


def _running_hierarchy(root: Root) -> tuple[int | None, EvidenceLine | None]:
    memory = cgroup.parse_cgroups(root.read("/proc/cgroups") or b"").get("memory")
    if memory is not None and memory.hierarchy:
        return 1, EvidenceLine("/proc/cgroups", None, f"memory is on hierarchy {memory.hierarchy}")
    membership = cgroup.parse_membership(root.read("/proc/self/cgroup") or b"")
    if 0 in membership:
        return 2, EvidenceLine("/proc/self/cgroup", None, "memory is on cgroup2")
    return None, None


def _installed(root: Root) -> tuple[tuple[str, EvidenceLine], ...]:
    found: dict[str, EvidenceLine] = {}
    for directory in ("/usr/lib/modules", "/lib/modules"):
        for name in root.names(directory):
            if _RELEASE.match(name):
                found.setdefault(name, EvidenceLine(f"{directory}/{name}", None, f"kernel {name} is installed"))
    for name in root.names("/boot"):
        release = name.removeprefix("vmlinuz-")
        if release != name and _RELEASE.match(release):
            found.setdefault(release, EvidenceLine(f"/boot/{name}", None, f"kernel {release} is installed"))
    return tuple(sorted(found.items()))


def _image_words(root: Root) -> tuple[tuple[str, EvidenceLine], ...]:
    """From the generated configuration of the boot loader if there is one, else from what it is generated of."""
    entries = [f"/boot/loader/entries/{name}" for name in root.names("/boot/loader/entries") if name.endswith(".conf")]
    for path in ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg", *entries):
        words = _words_of_boot_file(root, path)
        if words:
            return words
    sources = [_GRUB[0], *conf_files(root, [_GRUB[1]], ".cfg")]
    found = [word for path in sources for word in _words_of_grub_default(root, path)]
    text = root.text("/etc/kernel/cmdline") or ""
    found += [(word, EvidenceLine("/etc/kernel/cmdline", 1, word)) for word in text.split()]
    return tuple(found)


def _words_of_boot_file(root: Root, path: str) -> tuple[tuple[str, EvidenceLine], ...]:
    for number, line in _lines(root, path):
        found = _BOOT_LINES.match(line)
        if found:
            return tuple((word, EvidenceLine(path, number, word)) for word in found[1].split())
    return ()


def _words_of_grub_default(root: Root, path: str) -> list[tuple[str, EvidenceLine]]:
    found: list[tuple[str, EvidenceLine]] = []
    for number, line in _lines(root, path):
        assigned = _GRUB_KEYS.match(line)
        if assigned:
            words = assigned[2].strip().strip("\"'").split()
            found += [(word, EvidenceLine(path, number, word)) for word in words if not word.startswith("$")]
    return found


def _image_hierarchy(
    words: tuple[tuple[str, EvidenceLine], ...], system: dict[str, str], defaults: tuple[HierarchyDefault, ...]
) -> tuple[int | None, EvidenceLine | None]:
    for word, where in reversed(words):
        key, _, value = word.partition("=")
        if key == "systemd.unified_cgroup_hierarchy":
            return (2 if value in ("", "1", "yes", "true", "on") else 1), where
        if key == "cgroup_no_v1" and value in ("all", "memory"):
            return 2, where
    name, version = system.get("ID", ""), system.get("VERSION_ID", "")
    for default in defaults:
        if default.applies(name, version):
            text = f"{system.get('PRETTY_NAME') or name}: memory is on cgroup v{default.hierarchy} by default"
            return default.hierarchy, EvidenceLine("/etc/os-release", None, text)
    return None, None


def _image_sysctls(root: Root) -> dict[str, tuple[str, EvidenceLine]]:
    """sysctl.d, by file name; /etc/sysctl.conf comes last, as on Debian (99-sysctl.conf) and with procps."""
    found: dict[str, tuple[str, EvidenceLine]] = {}
    for path in (*conf_files(root, list(_SYSCTL), ".conf"), "/etc/sysctl.conf"):
        for number, line in _lines(root, path):
            name, equals, value = line.partition("=")
            name = name.strip().lstrip("-").replace("/", ".")
            if equals and name and name[0] not in "#;":
                found[name] = (value.strip(), EvidenceLine(path, number, line.strip()))
    return found


def _lines(root: Root, path: str) -> list[tuple[int, str]]:
    text = (root.read(path) or b"").decode("utf-8", "replace")
    return list(enumerate(text.splitlines(), 1))
