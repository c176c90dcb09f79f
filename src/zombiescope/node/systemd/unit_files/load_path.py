"""Where the system manager looks for unit files, drop-ins, presets and its own configuration, first to last.

man systemd.unit, "Unit File Load Path". Below /run is what a running node made for itself; an image has
nothing there. Debian before the merge of /usr kept its units in /lib, which then comes before /usr/lib, as its
systemd was built; on a merged system the two are one directory and count once.
"""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.node.systemd.root import Root

PERSISTENT = "/etc/systemd/system"
GENERATED = ("/run/systemd/generator.early", "/run/systemd/generator", "/run/systemd/generator.late")
TRANSIENT = "/run/systemd/transient"
VENDOR = ("/usr/local/lib/systemd/system/", "/lib/systemd/system/", "/usr/lib/systemd/system/")

_UNITS = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    TRANSIENT,
    GENERATED[0],
    PERSISTENT,
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    GENERATED[1],
    "/usr/local/lib/systemd/system",
    "/lib/systemd/system",
    "/usr/lib/systemd/system",
    GENERATED[2],
)
_CONFIGURATION = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd", "/lib/systemd")


@dataclass(frozen=True, slots=True)
class LoadPath:
    units: tuple[str, ...]
    """Directories that exist, in order."""
    aliases: dict[str, str]
    """Another spelling of one of them -> the spelling that is in `units` (/usr/lib/... of a merged system)."""


def unit_directories(root: Root) -> LoadPath:
    """Those that exist; a directory that is reached under two names counts once, under the first."""
    found: dict[str, str] = {}
    aliases: dict[str, str] = {}
    for directory in _UNITS:
        real = root.resolve(directory)
        if real is None or not root.is_directory(directory):
            continue
        aliases[directory] = aliases[real] = found.setdefault(real, directory)
    return LoadPath(tuple(found.values()), aliases)


def configuration_files(root: Root, name: str) -> list[str]:
    """The main file and then the drop-ins of, say, system.conf, in the order in which they are read."""
    main = next((path for path in (f"{place}/{name}" for place in _CONFIGURATION) if root.is_file(path)), None)
    return ([main] if main else []) + conf_files(root, [f"{place}/{name}.d" for place in _CONFIGURATION], ".conf")


def preset_files(root: Root) -> list[str]:
    return conf_files(root, [f"{place}/system-preset" for place in _CONFIGURATION], ".preset")


def conf_files(root: Root, directories: list[str], ending: str) -> list[str]:
    """The files of several directories by name; of two with one name the one in the earlier directory counts."""
    found: dict[str, str] = {}
    for directory in directories:
        for entry in root.entries(directory):
            if entry.name.endswith(ending) and not entry.is_directory:
                found.setdefault(entry.name, f"{directory}/{entry.name}")
    return [found[name] for name in sorted(found, key=lambda name: name.encode("utf-8", "surrogateescape"))]
