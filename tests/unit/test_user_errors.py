"""What a person may see as an error has `what` and `fix` as fields; the rest is caught in its own room."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

from zombiescope.audit.catalogue import CatalogueError
from zombiescope.base.errors import UserError
from zombiescope.store.node_directory import AlreadyRecordingError
from zombiescope.store.store import NotARecordingError, open_store

SOURCE = Path(__file__).parents[2] / "src" / "zombiescope"
ROOMS = (
    "imports", "symbols", "node/systemd", "kernel", "lab", "audit", "store", "query",
)  # fmt: skip
INTERNAL = {
    "NotMangledError", "NotRustError", "CallFailedError", "NotALeafError", "DamagedError", "TooMuchError", "NvmlError",
    "StrangeError", "UnsupportedError", "PostponedError", "RingMemoryError",
}  # fmt: skip
"""Answered where they are raised: no text of theirs is shown."""


def bases_of_errors() -> dict[str, set[str]]:
    found = {}
    for room in ROOMS:
        for path in (SOURCE / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
                    found[node.name] = {base.id for base in node.bases if isinstance(base, ast.Name)}
    return found


def test_every_error_that_leaves_its_room_is_a_user_error() -> None:
    found = bases_of_errors()
    shown = {name for name, bases in found.items() if "UserError" in bases}
    shown |= {name for name, bases in found.items() if bases & shown}
    assert {"NotARecordingError", "PushError", "CannotBuildError"} <= shown
    assert set(found) - shown == INTERNAL


def test_what_and_fix_stand_apart(tmp_path: Path) -> None:
    with pytest.raises(NotARecordingError) as caught:
        open_store(tmp_path / "none")
    error = caught.value
    assert error.what == f"there is no recording at {tmp_path / 'none'}"
    assert error.fix == f"`zombiescope record {tmp_path / 'none'}` starts one"
    assert str(error) == f"{error.what}; {error.fix}"
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (UserError("it failed"), None),
        (CatalogueError("own.toml is not TOML"), "docs/catalogue.md shows an entry"),
        (AlreadyRecordingError(Path("/x"), 7), "stop it first or choose another directory"),
    ],
)
def test_a_fix_is_none_or_what_helps(error: UserError, fix: str | None) -> None:
    assert error.fix == fix
    assert ";" not in error.what


def test_it_survives_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(NotARecordingError("no recording", "record one")))
    assert (error.what, error.fix) == ("no recording", "record one")
