"""What switches off, in an image, the units that `audit --root` complains about: a preset, a script, a step of a build.

preset       "disable UNIT" lines for /etc/systemd/system-preset, for images whose units are enabled at the first boot
             or by `systemctl preset`. A unit that nobody enables (static) is not reached by a preset: that is said.
shell        a script that takes the root directory; it needs no systemctl, so it runs wherever the image is built.
dockerfile   one RUN, for an image that is built from another.

Script and step mask a unit (a link to /dev/null, as `systemctl mask` makes), which holds against whatever pulls it in.
A unit whose own file lies in /etc/systemd/system, where that link would have to be, loses the links that enable it.
Names of units are systemd's (protected.py refuses others) and quoted nevertheless.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from zombiescope import audit
from zombiescope.audit.finding import Finding
from zombiescope.audit.protected import protection
from zombiescope.base.severity import rank
from zombiescope.base.text import printable
from zombiescope.node.systemd import unit_files
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files import UnitFiles, names

Form = Literal["preset", "shell", "dockerfile"]

UNITS = "/etc/systemd/system"
PRESET = "/etc/systemd/system-preset/00-zombiescope.preset"


@dataclass(frozen=True, slots=True)
class Off:
    """A unit that is to be switched off in an image."""

    unit: str
    why: tuple[str, ...]
    """Ids of the findings."""
    own_file: bool
    """Its file is where a mask would be."""
    enabled: bool
    """By links that a preset takes away."""


@dataclass(frozen=True, slots=True)
class Offs:
    root: str
    units: tuple[Off, ...]
    left: tuple[str, ...]
    """What no unit switched off would end, and why; in words."""


def offs(root: Path, only: str | None = None, force: Collection[str] = (), at_least: str = "warning") -> Offs:
    """Of what `audit` finds in it: `only` one finding, or all that are at least so bad. OSError where it is no root."""
    found = audit.examine(root, live=False)
    asked = [one for one in found.findings if (one.id == only if only else rank(one.severity) >= rank(at_least))]
    by_unit: dict[str, list[Finding]] = {}
    left = [f"{one.id}: it is about the node and not about one unit" for one in asked if one.unit is None]
    for one in asked:
        if one.unit is not None:
            by_unit.setdefault(one.unit, []).append(one)
    with Root(root) as place:
        files = unit_files.read(place)
        made = []
        for unit, findings in by_unit.items():
            why = protection(unit)
            if why is not None and unit not in force:
                left.append(f"{unit}: not switched off, because {why}; --force-unit {unit} would do it")
            elif names.is_valid(unit):
                made.append(_off(files, unit, findings))
    return Offs(str(root), tuple(made), tuple(map(printable, left)))


def _off(files: UnitFiles, unit: str, findings: Iterable[Finding]) -> Off:
    file = files.tree.files.get(unit)
    own = file is not None and file.path.startswith(f"{UNITS}/")
    state = files.state(unit) or ""
    by_preset = files.first_boot and not state.startswith(("static", "masked"))
    return Off(unit, tuple(one.id for one in findings), own, state.startswith("enabled") or by_preset)


def emit(found: Offs, form: Form) -> str:
    return {"preset": _preset, "shell": _shell, "dockerfile": _dockerfile}[form](found)


def _head(found: Offs) -> list[str]:
    lines = [f"# switches off what zombiescope audit --root {shlex.quote(printable(found.root))} complains about:"]
    lines += [f"#   {printable(name)}" for off in found.units for name in off.why]
    if not found.units:
        lines.append("#   no unit that could be switched off")
    return lines + [f"# not ended by this: {text}" for text in found.left]


def _preset(found: Offs) -> str:
    lines = _head(found)
    listed = shlex.join(["systemctl", f"--root={found.root}", "preset", *(off.unit for off in found.units)])
    if found.units:
        lines += [f"# put this into {PRESET} of the image; at a first boot, or after", f"#   {printable(listed)}"]
        lines += ["# these units are not enabled:"]
    for off in found.units:
        if not off.enabled:
            lines.append(
                f"# {off.unit} is pulled in without being enabled: a preset alone does not stop it, mask it too"
            )
        lines.append(f"disable {off.unit}")
    return "\n".join(lines) + "\n"


def _shell(found: Offs) -> str:
    lines = ["#!/bin/sh", *_head(found), "set -eu", f"root=${{1:-{shlex.quote(found.root)}}}"]
    lines += [
        "for part in etc etc/systemd etc/systemd/system; do",
        '  if [ -L "$root/$part" ]; then echo "$root/$part is a link and may lead out of the image" >&2; exit 1; fi',
        "done",
        f'mkdir -p "$root{UNITS}"',
    ]
    lines += [_command(off, '"$root"') for off in found.units]
    return "\n".join(lines) + "\n"


def _dockerfile(found: Offs) -> str:
    steps = [f"mkdir -p {UNITS}", *(_command(off, "") for off in found.units)]
    run = [] if not found.units else ["RUN " + " \\\n && ".join(steps)]
    return "\n".join([*_head(found), *run]) + "\n"


def _command(off: Off, root: str) -> str:
    if not off.own_file:
        return f"ln -sfn /dev/null {root}{shlex.quote(f'{UNITS}/{off.unit}')}"
    pattern = off.unit.replace("\\", "\\\\")  # find reads it as a glob
    return f"find {root}{UNITS} -mindepth 2 -type l -name {shlex.quote(pattern)} -exec rm -f {{}} +"
