"""What the laboratory broke is repaired by the very command that a person would type, and what it said is kept.

The log of it is in the recording's directory: this is no incident of the node. Whoever broke it cleans up afterwards
as always; what `fix` did to the node itself (a mask) is taken back first.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Sequence
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zombiescope.cli.private_recorder import PrivateRecorder
    from zombiescope.lab.verdict import Document, Found

VERIFIED_S = 20.0
FIXABLE = ("zombie-memcg",)
"""Patterns whose scenarios leave something that `fix` can end and see gone."""
_SHARED = "/dev/shm/"  # noqa: S108  where the scenarios' containers leave their pages
_UNDO_S = 120.0
Say = Callable[[str], None]


def incident_of(known: Sequence[Document], found: Found) -> str | None:
    """Whose first cause is the one that was found."""
    return next(
        (str(one["id"]) for one in known for cause in one["causes"][:1] if cause["summary"] == found.summary), None
    )


def repair(recorder: PrivateRecorder, scenario: str, incident: str, say: Say) -> Document:
    """`fix --apply --yes`, with consent to delete what the scenario itself put into memory; its answer."""
    from zombiescope.lab import leftovers

    pins = [str(place) for place in leftovers.find(scenario).directories if str(place).startswith(_SHARED)]
    words = ["fix", str(recorder.home), "--incident", incident, "--apply", "--yes"]
    words += ["--verify-for", f"{VERIFIED_S:.0f}s"]
    words += [word for place in pins for word in ("--force-unit", place)]
    say(f"repair: zombiescope {shlex.join(words)}")
    with TemporaryFile("w+") as answer:  # its log names every file: more than a pipe holds while nobody reads it
        with _started(recorder, words, answer) as process:
            assert process.stderr is not None
            for line in process.stderr:
                say(f"  {line.rstrip()}")
        answer.seek(0)
        said = answer.read()
    made: Document = json.loads(said) if said else {}
    return made


def _started(recorder: PrivateRecorder, words: list[str], answer: Any) -> subprocess.Popen[str]:
    from zombiescope.base import python as _python

    return subprocess.Popen(  # noqa: S603  our own interpreter, our own module
        _python.module("zombiescope.cli.main", *words, "--json"), env=_environment(recorder),
        stdout=answer, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _environment(recorder: PrivateRecorder) -> dict[str, str]:
    from zombiescope.base import python as _python

    return {**_python.environment(), "ZOMBIESCOPE_FIX_DIR": str(recorder.home / "fix")}


def repaired(recorder: PrivateRecorder, scenario: str, incident: str) -> Document:
    """What the score keeps of it: how many cgroups there were, whether it was verified, whether it came back."""
    leaked = census()
    said = repair(recorder, scenario, incident, lambda _: None)
    left = census()
    return {
        "verified": said.get("verified"),
        "verdict": (said.get("verification") or {}).get("verdict", "not applied"),
        "steps": [
            {"id": step["id"], "state": step["state"], "why": step["why"]}
            for step in said.get("steps", ()) if step["applicable"] or step["state"] != "planned"
        ],
        "checks": [check["text"] for check in (said.get("verification") or {}).get("checks", ())],
        "cgroups_before_fix": leaked,
        "cgroups_after_fix": left,
        "undone": _undone(recorder, incident),
    }  # fmt: skip


def _undone(recorder: PrivateRecorder, incident: str) -> list[Document]:
    """Files that were deleted are not brought back, and that is said; everything else is."""
    from zombiescope.base import python as _python

    words = ("fix", str(recorder.home), "--incident", incident, "--undo", "--yes", "--json")
    done = subprocess.run(  # noqa: S603  our own interpreter, our own module
        _python.module("zombiescope.cli.main", *words), env=_environment(recorder), capture_output=True,
        text=True, timeout=_UNDO_S, check=False,
    )  # fmt: skip
    return list(json.loads(done.stdout)["steps"]) if done.stdout else []


def census() -> int:
    """Memory cgroups that the kernel tracks, dying ones included."""
    from zombiescope.kernel.cgroup_census import CgroupCounter

    counter = CgroupCounter()
    try:
        read = counter.read()
    finally:
        counter.close()
    return 0 if read is None else read.total
