"""Every block of YAML in the documents that configures the agent is read by the agent without a mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from zombiescope.agent import parts
from zombiescope.agent.config import load

ROOT = Path(__file__).parents[3]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
INDENTED = re.compile(r"(?m)(?:^(?:    .*)?\n)+")
FENCED = re.compile(r"(?ms)^```ya?ml\n(.*?)^```")
CHART = frozenset({"podMonitor", "prometheusRule", "dashboard", "port", "allowFrom"})
"""Keys of the chart's section metrics; the agent's has others."""
LINE = re.compile(r"[a-z_]+:( |$)| +\S|- |#")


def blocks(page: Path) -> Iterator[str]:
    """Mappings in which a section of the agent, or a setting of one, stands at the top."""
    text = page.read_text()
    indented = [re.sub(r"(?m)^    ", "", block[0]) for block in INDENTED.finditer(text)]
    for block in [*indented, *FENCED.findall(text)]:
        lines = [line for line in block.splitlines() if line.strip()]
        if not lines or not all(LINE.match(line) for line in lines):
            continue
        try:
            document = yaml.safe_load(block)
        except yaml.YAMLError:
            continue
        if isinstance(document, dict) and _configures(document):
            yield block


def _configures(document: dict[str, object]) -> bool:
    if any(isinstance(value, dict) and set(value) & CHART for value in document.values()):
        return False
    kinds = parts.sections()
    settings = {one.name for kind in kinds.values() for one in fields(kind)}
    return bool(set(document) & set(kinds)) or set(document) <= settings


CASES = [(page.relative_to(ROOT), block) for page in PAGES for block in blocks(page)]


@pytest.mark.parametrize(("page", "block"), CASES, ids=[f"{page}-{number}" for number, (page, _) in enumerate(CASES)])
def test_the_agent_understands_what_the_documents_tell_to_write(page: Path, block: str) -> None:
    assert load.read(block, page.name, parts.sections(), {}).mistakes == ()


def test_blocks_are_found_where_they_are() -> None:
    found = {str(page) for page, _ in CASES}
    assert {"docs/agent.md", "docs/shipping.md", "docs/profiles-push.md", "docs/deploy-nodes.md"} <= found
