"""The pages for contributors are followed literally: what they show is put where they say, in a copy, and works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("add-a-pattern", "add-a-scenario")
_FILE = re.compile(r"^`(\S+\.py)`\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def shown(page: str) -> dict[str, str]:
    """Path -> what the page shows of it."""
    return dict(_FILE.findall((ROOT / "docs/how-to" / f"{page}.md").read_text()))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with the files of both pages in it; neither is in ours."""
    made = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__", "*.c", "page")
    shutil.copytree(ROOT / "src", made / "src", ignore=ignored)
    shutil.copytree(ROOT / "tests/helpers", made / "tests/helpers", ignore=ignored)
    for name in ("tests/__init__.py", "tests/conftest.py", "tests/quarantine.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, made / name)
    (made / "docs/patterns").mkdir(parents=True)
    for page in PAGES:
        for name, text in shown(page).items():
            assert not (ROOT / name).exists(), "an example must not be in use already"
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_text(text)
    return made


def run(copy: Path, *arguments: str) -> str:
    """With this interpreter, on the copy."""
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{copy}"}
    argv = [sys.executable, *arguments]
    done = subprocess.run(argv, cwd=copy, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_each_page_shows_its_files() -> None:
    assert [Path(name).name for name in shown(PAGES[0])] == ["proc_scanner.py", "test_proc_scanner.py"]
    assert [Path(name).name for name in shown(PAGES[1])] == ["proc_scanner.py"]


def test_the_pattern_is_detected_and_its_near_miss_is_not(copy: Path) -> None:
    told = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/diagnosis/test_proc_scanner.py")
    assert "2 passed" in told


def test_the_pattern_gets_its_page(copy: Path) -> None:
    run(copy, "-m", "zombiescope.diagnosis.patterns")
    assert "All processes are listed over and over" in (copy / "docs/patterns/proc-scanner.md").read_text()


def test_the_scenario_is_listed_with_its_truth(copy: Path) -> None:
    told = run(copy, "-m", "zombiescope.cli.main", "lab", "list", "--json")
    assert '"proc-scanner"' in told


def test_what_is_shown_passes_lint(copy: Path) -> None:
    files = [name for page in PAGES for name in shown(page)]
    run(copy, "-m", "ruff", "check", "--no-cache", *files)
    run(copy, "-m", "ruff", "format", "--no-cache", "--check", *files)
