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
PAGES = ("add-a-pattern", "add-a-scenario", "add-a-source", "add-a-column")
_FILE = re.compile(r"^`(\S+\.py)`\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_DIFF = re.compile(r"^```diff\n(.*?)^```", re.MULTILINE | re.DOTALL)


def shown(page: str) -> dict[str, str]:
    """Path -> what the page shows of it."""
    return dict(_FILE.findall((ROOT / "docs/how-to" / f"{page}.md").read_text()))


def changes(page: str) -> list[str]:
    """The differences that the page shows to files which are there."""
    return _DIFF.findall((ROOT / "docs/how-to" / f"{page}.md").read_text())


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with the files of all pages in it; none of them is in ours."""
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
        for change in changes(page):
            subprocess.run(
                ["git", "apply", "--recount", "-"], cwd=made, input=change, text=True, check=True, timeout=60
            )
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
    assert [Path(name).name for name in shown(PAGES[2])] == ["entropy.py", "entropy.py", "test_entropy.py"]
    assert [Path(name).name for name in shown(PAGES[3])] == ["test_kernel_column.py"]
    assert [change.count("+++ b/") for change in changes(PAGES[3])] == [1], "a derived column is one file and its test"


def test_the_pattern_is_detected_and_its_near_miss_is_not(copy: Path) -> None:
    told = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/diagnosis/test_proc_scanner.py")
    assert "2 passed" in told


def test_the_pattern_gets_its_page(copy: Path) -> None:
    run(copy, "-m", "zombiescope.diagnosis.patterns")
    assert "All processes are listed over and over" in (copy / "docs/patterns/proc-scanner.md").read_text()


def test_the_scenario_is_listed_with_its_truth(copy: Path) -> None:
    told = run(copy, "-m", "zombiescope.cli.main", "lab", "list", "--json")
    assert '"proc-scanner"' in told


def test_the_source_is_read_and_missing_where_it_cannot_be(copy: Path) -> None:
    told = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/recorder/test_entropy.py")
    assert "2 passed" in told


def test_the_recorder_finds_the_source_and_records_it(copy: Path, tmp_path: Path) -> None:
    # WHEN a recorder with nothing but these files runs for two ticks on another root
    (tmp_path / "root/proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "root/proc/sys/kernel/random/entropy_avail").write_text("256\n")
    script = (
        "import sys\n"
        "from zombiescope.recorder.config import RecorderConfig\n"
        "from zombiescope.recorder.recorder import Recorder\n"
        "recorder = Recorder(RecorderConfig(dir=sys.argv[1], node='n', diagnose=False), root=sys.argv[2])\n"
        "recorder.tick(0); recorder.write(); recorder.close()\n"
        "from zombiescope.store.reader import open_recording\n"
        "rows = open_recording(sys.argv[1]).table('series').to_pylist()\n"
        "print([row['name'] for row in rows if row['source'] == 'random'])\n"
    )
    assert "['entropy_bits']" in run(copy, "-c", script, str(tmp_path / "rec"), str(tmp_path / "root"))


def test_the_column_is_in_json_terminal_and_csv(copy: Path) -> None:
    told = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/query/test_kernel_column.py")
    assert "2 passed" in told


def test_what_is_shown_passes_lint(copy: Path) -> None:
    files = [name for page in PAGES for name in shown(page)]
    run(copy, "-m", "ruff", "check", "--no-cache", *files)
    run(copy, "-m", "ruff", "format", "--no-cache", "--check", *files)
