"""The documentation site: every page can be reached, no link is broken, and nothing is loaded from elsewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LOADED = re.compile(r'<(?:script|img|iframe|source)[^>]+src="([^"]+)"|<link[^>]+href="([^"]+)"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("material") is None:
        pytest.skip("needs mkdocs-material (make docs installs it)")
    made = tmp_path_factory.mktemp("site")
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(made)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_every_page_is_there_and_is_reached_from_every_other(site: Path) -> None:
    home = (site / "index.html").read_text()
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).with_suffix(".html").as_posix()
        assert (site / name).exists(), name
        assert f'href="{name}"' in home or name == "index.html", f"{name} is not in the nav"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        for found in LOADED.findall(page.read_text()):
            address = found[0] or found[1]
            assert "//" not in address or address.startswith("data:"), f"{page.name} loads {address}"
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text(), style.name


def test_links_of_the_pages_beside_docs_lead_somewhere() -> None:
    """README and the others are not part of the site, so mkdocs does not look at them."""
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text()
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            assert "://" in target or (ROOT / target).exists(), f"{name} links to {target}"


def test_the_readme_is_one_screen_before_its_first_picture() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    before = next(number for number, line in enumerate(lines) if line.startswith("!["))
    assert before <= 40
