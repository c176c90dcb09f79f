"""A hook of mkdocs: pages that mkdocs.yml does not list still get their place in the nav.

Commands, patterns and design records are whole folders, one page each; a page that nobody has listed stands under
"More", so that a new page is reachable at once and the build does not fail for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDERS = {"Commands": "commands", "Patterns": "patterns", "Data": "data", "Design records": "design"}


def on_config(config: Any) -> Any:
    docs = Path(config["docs_dir"])
    listed = set(_pages(config["nav"]))
    for title, folder in FOLDERS.items():
        pages = sorted(path.relative_to(docs).as_posix() for path in (docs / folder).glob("*.md"))
        listed.update(pages)
        config["nav"].append({title: sorted(pages, key=lambda page: not page.endswith("/index.md"))})
    rest = sorted({path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} - listed)
    if rest:
        config["nav"].append({"More": rest})
    return config


def _pages(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
        return
    for value in nav.values() if isinstance(nav, dict) else nav:
        yield from _pages(value)
