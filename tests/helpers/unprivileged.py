"""Running something as an ordinary user, or with a few capabilities and no more.

The interpreter may lie below a directory that only root may enter (a home directory). Then the command runs in a
mount namespace of its own in which that directory is replaced by an empty one that holds just the interpreter;
nothing changes outside."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

NOBODY = 65534


def unprivileged(*capabilities: str) -> tuple[str, ...]:
    """A command prefix: what follows runs as nobody, with just these capabilities (names without cap_)."""
    kept = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", f"--inh-caps={kept}",
            f"--bounding-set={kept}"]  # fmt: skip
    if capabilities:
        drop.append(f"--ambient-caps={kept}")
    closed = _closed_directories()
    if not closed:
        return tuple(drop)
    steps = [step for place, needed in closed.items() for step in _reopen(place, needed)]
    script = "; ".join(["set -e", *steps, f'exec {shlex.join(drop)} "$@"'])
    return ("unshare", "--mount", "sh", "-c", script, "sh")


def _closed_directories() -> dict[Path, list[Path]]:
    """Directory that others may not enter -> what the tests need below it."""
    closed: dict[Path, list[Path]] = {}
    for needed in {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), Path(__file__).parents[2]}:
        for ancestor in reversed([needed, *needed.parents]):
            if not ancestor.stat().st_mode & 0o001:
                closed.setdefault(ancestor, []).append(needed)
                break
    return closed


def _reopen(place: Path, needed: list[Path]) -> list[str]:
    quoted = shlex.quote(str(place))
    steps = ["hold=$(mktemp -d)", "mount -t tmpfs -o mode=755 none $hold"]
    for number, path in enumerate(needed):
        steps += [f"mkdir $hold/{number}", f"mount --bind {shlex.quote(str(path))} $hold/{number}"]
    steps.append(f"mount -t tmpfs -o mode=755 none {quoted}")
    for number, path in enumerate(needed):
        target = shlex.quote(str(path))
        steps += [f"mkdir -p {target}", f"mount --bind $hold/{number} {target}"]
    return steps
