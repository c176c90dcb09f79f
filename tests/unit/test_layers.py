"""Imports go one way. The order is DESIGN's diagram; docs/design/0001 says what it means for imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

EVERYWHERE = {"_native", "base"}

ROOMS = {
    "base": {"base", "_mark"},
    # What several packages share as values: what is to be done (0040), and how an answer says itself (0073).
    "model": {"model"},
    "kernel": {"kernel"},
    "symbols": {"symbols"},
    # systemd, container runtimes, the Kubernetes API, Ray: none of them imports another.
    "node": {"node", "kernel"},
    "store": {"store", "_mark"},
    "recorder": {"recorder", "store", "symbols", "node", "kernel"},
    "imports": {"imports", "store", "symbols", "kernel"},
    # Recordings hold names as the linker knows them; symbols makes them readable when they are shown (0008).
    "query": {"query", "model", "store", "symbols", "kernel"},
    # Findings have one shape, and `check` is a diagnosis beside the audit of the node.
    "diagnosis": {"diagnosis", "model", "audit", "query", "store", "node", "kernel"},
    "audit": {"audit", "node", "kernel"},
    "lab": {"lab", "imports", "store", "kernel", ""},
    # The one package that changes the node; only the command line may use it (0038).
    "fix": {"fix", "model", "diagnosis", "audit", "query", "store", "node", "kernel"},
    # What may be asked: only how filters are read needs another package.
    "questions": {"questions", "model", "query"},
    "documents": {"documents", "questions", "diagnosis", "model", "audit", "query", "store", "kernel"},
    # Statistics of many recordings: what one node's rollups, incidents and stacks say. It has no causes of its own, and
    # diagnoses nodes that no live diagnosis judged (0110).
    "fleet": {"fleet", "diagnosis", "query", "store"},
    # What an assistant may ask, answered in short; who holds the recordings open is the caller.
    "assistant": {"assistant", "model", "documents", "questions", "query", "store"},
    # What a page shows is a document; the other packages are for making one of a selection that is held open.
    "web": {"web", "assistant", "model", "documents", "questions", "fleet", "diagnosis", "imports", "query", "store"},
    # The face for scripts and notebooks: the reader's tables and the commands' answers (0060).
    "notebook": {"notebook", "documents", "questions", "diagnosis", "query", "store"},
    # Follows a recording as `top` does; the recorder's settings have one place.
    "agent": {"agent", "node", "questions", "recorder", "store", "query", "kernel", "symbols"},
    "cli": {
        "cli", "agent", "assistant", "documents", "questions", "web", "fleet", "imports", "fix", "model", "diagnosis",
        "audit", "lab", "query", "store", "kernel", "_mark",
    },
}  # fmt: skip
"""Package -> packages that it may import from. "" is the package itself."""

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


def test_only_the_command_line_imports_the_lab() -> None:
    """Whoever runs a node may leave the lab out."""
    users = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py") if "lab" in imported_rooms(path)}
    assert users == {"cli", "lab"}


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
