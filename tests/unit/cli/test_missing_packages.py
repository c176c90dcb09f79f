"""A package that is not installed is one line with the command that installs it, in every command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from zombiescope.base import packages
from zombiescope.base.errors import UserError
from zombiescope.base.packages import MissingPackageError, explained, install

WITHOUT = """
import sys
sys.modules[{module!r}] = None  # as if it were not installed
sys.argv[1:] = {arguments!r}
from zombiescope.cli import start
start.main()
"""


def run_without(module: str, place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(module=module, arguments=list(arguments))
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("arguments", [["agent"], ["agent", "--check-config"], ["agent", "--listen", "127.0.0.1:1"]])
def test_the_agent_without_its_extra_names_the_extra(arguments: list[str], tmp_path: Path) -> None:
    done = run_without("yaml", tmp_path, *arguments)
    line = f"zombiescope: the Python package yaml is not installed; {install('agent')}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


@pytest.mark.parametrize("arguments", [["--version"], ["diagnose", "rec"], []])
def test_a_command_without_any_requirement_names_the_package(arguments: list[str], tmp_path: Path) -> None:
    # GIVEN what `pip install --no-deps` installs
    done = run_without("typer", tmp_path, *arguments)
    line = f"zombiescope: the Python package typer is not installed; {install()}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


def test_the_import_that_needs_no_typer_names_the_package(tmp_path: Path) -> None:
    (tmp_path / "stacks.txt").write_text("main;work 3\n")
    done = run_without("zstandard", tmp_path, "import", "stacks.txt", "rec")
    line = f"zombiescope: the Python package zstandard is not installed; {install()}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("pyarrow", None),
        ("dbus_fast", None),
        ("yaml", "agent"),
        ("prometheus_client", "agent"),
        ("duckdb", "fleet"),
        ("ray", "ray"),
        ("pandas", "pandas"),
    ],
)
def test_the_extra_is_the_one_that_brings_the_module(module: str, extra: str | None) -> None:
    error = explained(ModuleNotFoundError(f"No module named {module!r}", name=module))
    assert isinstance(error, MissingPackageError)
    assert error.fix == install(extra)


@pytest.mark.parametrize(
    ("kind", "place", "command"),
    [
        (
            "clone",
            "/home/a b/zombiescope",
            f"{sys.executable} -m pip install --editable '/home/a b/zombiescope[fleet]'",
        ),
        ("wheel", "/tmp/zombiescope-1.whl", f"{sys.executable} -m pip install '/tmp/zombiescope-1.whl[fleet]'"),
        ("wheel", "", f"{sys.executable} -m pip install 'zombiescope-VERSION.whl[fleet]'"),
        ("package", "", "the package brings it: install it again, as a whole"),
    ],
)
def test_the_command_fits_how_it_was_installed(
    kind: packages.Kind, place: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "kind_of_installation", lambda: (kind, place))
    assert install("fleet") == command


def test_a_clone_is_known_and_no_command_names_what_no_index_has() -> None:
    assert packages.kind_of_installation() == ("clone", str(Path(__file__).parents[3]))
    said = [
        path for path in (Path(packages.__file__).parents[1]).rglob("*.py") if "pip install 'zombie" in path.read_text()
    ]
    assert said == []


@pytest.mark.parametrize("error", [ModuleNotFoundError("x", name="zombiescope.gone"), ValueError("x"), UserError("x")])
def test_any_other_error_stays_what_it_is(error: Exception) -> None:
    assert explained(error) is error
