#!/usr/bin/env python3
"""docs/configuration.md, docs/events.md and the number of causes in README.md and docs/status.md, made from the
declarations. Run, it writes them; a test compares them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from zombiescope.agent import parts
from zombiescope.agent.config.json_schema import schema
from zombiescope.diagnosis import patterns
from zombiescope.diagnosis.pattern import FALLBACK
from zombiescope.kernel.log_formats import FORMATS
from zombiescope.kernel.log_kinds import KINDS as LOG_KINDS
from zombiescope.store.event import MEANINGS

DOCS = Path(__file__).resolve().parents[1] / "docs"

CONFIGURATION = """\
# Configuration reference

Every section and key of `/etc/zombiescope/agent.yaml`, with its default. [The agent](agent.md#configuration) explains how it is read;
[agent.schema.json](agent.schema.json) is the same for editors. Check a file with `zombiescope agent --check-config --config FILE`.

Precedence: command line, then environment, then file. `ZOMBIESCOPE_METRICS__LISTEN` sets `metrics.listen`: two underscores
separate section and key. Durations are written `250ms`, `30s`, `5m`, `12h`; sizes `500MB`, `2GB`.
"""
EVENTS = """\
# Event kinds

What `zombiescope events --kind KIND` can show, and what `kind` is in JSON, in the table `events` and in the metric
`zombiescope_kernel_events_total`.

## From the kernel log

| kind | meaning | severity | example |
|---|---|---|---|
"""


DESIGN = """\
# Design records

One record per decision that may be questioned later: context, decision, alternatives. A record is not rewritten when the code changes; a later
record supersedes it and says so. File names keep the words of their time (`doctor` is the live diagnosis, `room` a package). Missing numbers
were reserved for work that needed no record, or that was merged into another one.

| record | title | status |
|---|---|---|
"""


def pages() -> dict[Path, str]:
    made = {DOCS / "configuration.md": _configuration(), DOCS / "events.md": _events()}
    counted = f"<!-- causes -->{_causes()}<!-- /causes -->"
    for path in (DOCS.parent / "README.md", DOCS / "status.md"):
        made[path] = re.sub(r"<!-- causes -->.*?<!-- /causes -->", counted, path.read_text())
    return made


def design_index() -> str:
    """Of all records, by their headings. No test compares it: a record may land with any change."""
    rows = []
    for path in sorted((DOCS / "design").glob("[0-9]*.md")):
        text = path.read_text()
        number, _, title = text.partition("\n")[0].removeprefix("# ").partition(": ")
        by = re.search(r"^Superseded by (\[\d{4}\]\([\w.-]+\))", text, re.MULTILINE)
        rows.append(f"| [{number}]({path.name}) | {title} | {f'superseded by {by[1]}' if by else 'accepted'} |")
    return DESIGN + "\n".join(rows) + "\n"


def _causes() -> str:
    causes = [one for one in patterns.every() if one.id != FALLBACK]
    real = sum(one.proof == "kernel" for one in causes)
    return f"{len(causes)} causes: {real} reproduced on a real kernel, {len(causes) - real} known from literature only"


def _configuration() -> str:
    lines = [CONFIGURATION]
    for name, section in schema(parts.sections())["properties"].items():
        lines += [f"\n## {name}\n", f"{section['description']}\n", "| key | type | default | |", "|---|---|---|---|"]
        lines += [f"| `{key}` | {kind} | {default} | {said} |" for key, kind, default, said in _settings(name, section)]
    return "\n".join(lines) + "\n"


def _settings(prefix: str, section: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for name, setting in section["properties"].items():
        if "properties" in setting:
            yield from _settings(f"{prefix}.{name}", setting)
            continue
        default = "required" if name in section.get("required", ()) else f"`{_written(setting.get('default'))}`"
        yield f"{prefix}.{name}", _kind(setting), default, _cell(setting["description"])


def _kind(setting: Mapping[str, Any]) -> str:
    if "enum" in setting:
        return ", ".join(f"`{one}`" for one in setting["enum"])
    if "anyOf" in setting:
        return _kind(setting["anyOf"][0])
    kind = setting["type"] if isinstance(setting["type"], str) else "size"
    bounds = "-".join(str(setting[one]) for one in ("minimum", "maximum") if one in setting)
    if str(setting.get("default", "")) and "us|ms|s" in setting.get("pattern", ""):
        kind = "duration"
    return {"object": "map", "array": "list", "boolean": "yes or no"}.get(kind, kind) + (f" {bounds}" if bounds else "")


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value) or '""'


def _events() -> str:
    rows = []
    for kind in dict.fromkeys(line.kind for line in FORMATS):
        lines = [line for line in FORMATS if line.kind == kind]
        severities = " or ".join(dict.fromkeys(line.severity for line in lines))
        title = LOG_KINDS[kind].title if kind in LOG_KINDS else MEANINGS.get(kind, kind.replace("_", " "))
        rows.append((kind, f"| `{kind}` | {title} | {severities} | `{_cell(lines[0].sample)}` |"))
    others = [f"| `{kind}` | {meaning} |" for kind, meaning in MEANINGS.items() if kind not in dict(rows)]
    second = ["", "## From everything else", "", "| kind | meaning |", "|---|---|", *others]
    return EVENTS + "\n".join([row for _, row in sorted(rows)] + second) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("`", "'").split())


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
        sys.stdout.write(f"{path}\n")
    (DOCS / "design" / "index.md").write_text(design_index())
