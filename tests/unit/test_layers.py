"""Imports go one way. The order is DESIGN's diagram; docs/design/0001 says what it means for imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

EVERYWHERE = {
    "_native", "_python", "_time", "_severity", "_errors", "_json", "_missing", "_text", "_safe_files", "_secrets",
    "_confinement", "_feed", "_helper", "_interrupt", "_packages",
}  # fmt: skip

ROOMS = {
    "kernel": {"kernel"},
    # What is to be done, as values that everybody may show (0040).
    "plans": {"plans"},
    "systemd": {"systemd", "kernel", "_in_root"},
    "containers": {"containers", "kernel", "_in_root"},
    "symbols": {"symbols", "_in_root"},
    "recording": {"recording", "_mark"},
    "recorder": {"recorder", "recording", "symbols", "systemd", "containers", "kernel"},
    "importing": {"importing", "recording", "symbols", "kernel"},
    "views": {"views", "recording", "kernel"},
    # Recordings hold names as the linker knows them; symbols makes them readable when they are shown (0008).
    "profile": {"profile", "recording", "symbols"},
    "exporting": {"exporting", "profile", "views", "recording"},
    # What leaves the node is the recording as it lies there, or with other words.
    "shipping": {"shipping", "recording"},
    "ray": {"ray"},
    # Findings have one shape, and `check` is a diagnosis beside the audit of the node.
    "diagnosis": {"diagnosis", "plans", "audit", "profile", "views", "recording", "systemd", "kernel"},
    "audit": {"audit", "systemd", "kernel"},
    "lab": {"lab", "importing", "recording", "kernel", ""},
    # The API server: names, events and steps of a fix; agent and commands call it. It needs no other room.
    "cluster": {"cluster"},
    # The one room that changes the node; only the command line may use it (0038).
    "remedy": {"remedy", "plans", "cluster", "diagnosis", "audit", "views", "recording", "systemd", "kernel"},
    # What may be asked: only how filters are read needs another room.
    "questions": {"questions", "profile"},
    "documents": {
        "documents", "questions", "diagnosis", "plans", "audit", "profile", "views", "recording", "kernel",
    },
    # Statistics of many recordings: what one node's rollups, incidents and stacks say, and no causes of its own.
    "fleet": {"fleet", "profile", "recording"},
    # What a page shows is a document; the other rooms are for making one of a selection that is held open.
    "web": {"web", "documents", "questions", "exporting", "fleet", "diagnosis", "lab", "profile", "views", "recording"},
    # The face for scripts and notebooks: the reader's tables and the commands' answers (0060).
    "notebook": {"notebook", "documents", "questions", "diagnosis", "profile", "recording"},
    # Follows a recording as `top` does; the recorder's settings and the form of an address have one place each.
    "agent": {"agent", "cluster", "ray", "web", "questions", "recorder", "recording", "shipping", "views", "kernel"},
    "commands": {
        "commands", "agent", "documents", "questions", "web", "fleet", "importing", "exporting", "shipping", "remedy",
        "plans", "diagnosis", "audit", "lab", "profile", "views", "recording", "kernel", "_mark",
    },
}  # fmt: skip
"""Room -> rooms that it may import from. "" is the package itself."""

HEAVY = (
    "numpy", "pyarrow", "pandas", "typer", "rich", "click", "pydantic", "symbolic", "fastapi", "starlette", "uvicorn",
    "yaml", "prometheus_client", "duckdb", "ray",
)  # fmt: skip
SOURCE = Path(__file__).parents[2] / "src" / "zombiescope"


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
            if node.module == "zombiescope":
                names = [f"zombiescope.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] if "." in name else "" for name in names if name.split(".")[0] == "zombiescope"}
    return found


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_imports_only_from_rooms_before_it(room: str) -> None:
    modules = sorted((SOURCE / room).rglob("*.py"))
    assert modules
    for path in modules:
        strange = imported_rooms(path) - ROOMS[room] - EVERYWHERE
        assert not strange, f"{path.relative_to(SOURCE)} imports {sorted(strange)}"


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_no_permission_is_left_unused(room: str) -> None:
    used = set().union(*(imported_rooms(path) for path in (SOURCE / room).rglob("*.py")))
    assert ROOMS[room] - used - {room} == set()


def test_every_room_is_listed() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(ROOMS)


def test_the_recorder_loads_nothing_heavy() -> None:
    script = "import sys, zombiescope.recorder.__main__; print(*sorted(name.split('.')[0] for name in sys.modules))"
    loaded = set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )
    assert loaded.isdisjoint(HEAVY)


def test_the_supervisor_loads_nothing_but_the_standard_library() -> None:
    """It holds the recorder's capabilities: whatever could be taken over is in another process."""
    script = "import sys, zombiescope.agent.__main__; print(*sorted(name.split('.')[0] for name in sys.modules))"
    loaded = set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )
    assert loaded - set(sys.stdlib_module_names) - {"zombiescope", "__main__"} <= started_with()


def test_the_services_load_nothing_heavy() -> None:
    script = "import sys, zombiescope.agent.services; print(*sorted(name.split('.')[0] for name in sys.modules))"
    loaded = set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )
    assert loaded.isdisjoint(set(HEAVY) - {"yaml"})


def started_with() -> set[str]:
    """What the interpreter itself brings along here."""
    script = "import sys; print(*sorted(name.split('.')[0] for name in sys.modules))"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )
