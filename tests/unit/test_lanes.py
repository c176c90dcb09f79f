"""The dependency lanes (tests/lanes) install what pyproject.toml says, and a step that fails makes the lane fail."""

from __future__ import annotations

import ast
import sys
import time
from pathlib import Path

import pytest
from tests.lanes import acceptance, interpreters, requirements
from tests.lanes.acceptance import Installation, NotRun, Step, StepFailed

ROOT = Path(__file__).resolve().parents[2]
MADE = """
[project]
name = "made"
classifiers = ["Programming Language :: Python :: 3.12", "Programming Language :: Python :: 3.9", "Topic :: X"]
dependencies = ["rows>=2.0; python_version < '3.13'", "rows>=2.1; python_version >= '3.13'", "plain>=1,<3"]
[project.optional-dependencies]
store = ["Store-It[s3]>=0.5"]
both = ["made[store]", "more>=7"]
"""


# --- requirements -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("python", "rows"), [("3.12", "rows==2.0"), ("3.13", "rows==2.1"), ("3.14", "rows==2.1")])
def test_the_minimum_is_the_one_of_this_python(python: str, rows: str) -> None:
    project = requirements.project(MADE)
    assert requirements.minima(project.requirements([], python)) == ["plain==1", rows]


def test_an_extra_that_names_another_one_brings_its_requirements() -> None:
    found = requirements.minima(requirements.project(MADE).requirements(["both"], "3.12"))
    assert found == ["more==7", "plain==1", "rows==2.0", "Store-It==0.5"]


def test_a_requirement_without_a_minimum_is_refused() -> None:
    project = requirements.project(MADE.replace("more>=7", "more"))
    with pytest.raises(ValueError, match="more does not have one minimum"):
        requirements.minima(project.requirements(["both"], "3.12"))


def test_every_requirement_has_a_minimum_on_every_python() -> None:
    project = requirements.project()
    for python in interpreters.supported(project):
        pins = requirements.minima(project.requirements(project.extras, python))
        names = [pin.partition("==")[0] for pin in pins]
        assert len(names) == len(set(names)), f"two minima on {python}"
        assert {"numpy", "pyarrow", "pandas", "ray", "PyYAML"} <= set(names)


def test_the_lock_is_made_from_the_same_packages() -> None:
    project = requirements.project()
    required = {each.name for each in project.requirements(["agent", "cluster"], "3.11")}
    lines = (ROOT / "requirements/runtime.in").read_text().splitlines()
    assert {line for line in lines if not line.startswith("#")} == required


# --- interpreters -----------------------------------------------------------------------------------------------------


def test_the_supported_pythons_are_in_order_of_version() -> None:
    assert interpreters.supported(requirements.project(MADE)) == ["3.9", "3.12"]


def test_an_interpreter_that_does_not_run_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a shim on PATH of a version that is not installed, and that version in pyenv's directory
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    (tmp_path / "shims").mkdir()
    shim = tmp_path / "shims" / f"python{version}"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    real = tmp_path / "pyenv/versions" / f"{version}.99/bin/python3"
    real.parent.mkdir(parents=True)
    real.symlink_to(Path(sys.base_prefix) / f"bin/python{version}")
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    assert interpreters.found(version) == str(real)
    assert interpreters.found("3.999") is None


# --- the acceptance list ----------------------------------------------------------------------------------------------


def installation(place: Path, script: str = "exit 0") -> Installation:
    command = place / "zombiescope"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    return Installation(str(command), sys.executable, place, None)


def step(what: str) -> Step:
    def run(_: Installation) -> str:
        if what == "fails":
            raise StepFailed("two\nlines")
        if what == "cannot":
            raise NotRun("no extra")
        if what == "breaks":
            raise KeyError("incidents")
        if what == "hangs":
            time.sleep(60)
        return "seen"

    return Step(run, 0.2)


@pytest.mark.parametrize(
    ("what", "outcome", "note"),
    [
        ("works", "ok", "seen"),
        ("fails", "FAILED", "two lines"),
        ("cannot", "not run", "no extra"),
        ("breaks", "FAILED", "KeyError: 'incidents'"),
        ("hangs", "FAILED", "not done after 0 s"),
    ],
)
def test_a_step_has_an_outcome_whatever_happens(what: str, outcome: str, note: str, tmp_path: Path) -> None:
    result = acceptance.perform(step(what), installation(tmp_path))
    assert (result.outcome, result.note) == (outcome, note)


def test_a_command_that_crashes_fails_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # GIVEN a command that dies of a signal, as `diagnose` did with an older pyarrow
    here = installation(tmp_path, "kill -SEGV $$")
    assert acceptance.main(["--steps", "version,demo,diagnose", here.command]) == 1
    shown = capsys.readouterr().out
    assert "exit by SIGSEGV" in shown
    # AND what needs the demo's recording is not counted as a success
    assert "acceptance: 1 not run, 2 failed (version, demo)" in shown


def test_a_command_that_works_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = installation(tmp_path, "echo zombiescope 1.2.3")
    assert acceptance.main(["--steps", "version", here.command]) == 0
    assert "acceptance: 1 ok" in capsys.readouterr().out


def test_an_answer_without_the_founding_case_is_a_failure(tmp_path: Path) -> None:
    here = installation(tmp_path, """echo '{"incidents": []}'""")
    result = acceptance.perform(next(each for each in acceptance.STEPS if each.name == "demo"), here)
    assert (result.outcome, result.note) == ("FAILED", "demo: no incident")


def test_the_list_can_be_copied_to_another_machine() -> None:
    tree = ast.parse(Path(acceptance.__file__).read_text(), feature_version=(3, 9))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def test_the_snippets_that_it_runs_are_on_the_page() -> None:
    for heading in acceptance.SNIPPETS:
        assert acceptance.snippet(ROOT / "docs/python.md", heading)
