"""The page of a pattern in the docs, made from its file: what it looks like, its frames, its numbers, what to do.

`python -m zombiescope.diagnosis.patterns docs/patterns` writes all of them; a test holds them against the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from zombiescope.diagnosis.incident import Proof
from zombiescope.diagnosis.pattern import Pattern, Signature

PROOF: dict[Proof, str] = {
    "kernel": "reproduced on a real kernel, recorded and diagnosed",
    "golden": "replayed from a documented case",
    "literature": "known only from literature; its confidence stays at or below 0.6",
}
_SCOPES = {
    "hog": "the hog's kernel samples",
    "core": "the kernel samples of the core, whoever was charged for them",
    "node": "all kernel samples of the node",
}


def page(pattern: Pattern) -> str:
    """Markdown."""
    parts = [
        f"# {pattern.id}: {pattern.title}",
        pattern.looks_like,
        f"**Confirmed by** {_lower(pattern.confirmed_by)}",
        f"**Refuted by** {_lower(pattern.refuted_by)}",
        f"**Hog**: {pattern.hog}  \n**Culprit**: {pattern.culprit}",
        "## How to fix it",
        pattern.remedy,
        "## Frames",
        _frames(pattern),
        "## How it is known",
        f"Proof: {pattern.proof}, {PROOF[pattern.proof]}."
        + (f" From: {pattern.known_from}." if pattern.known_from else ""),
        f"As a Kubernetes event its reason is `{pattern.reason}`, and so is the name of its alert.",
    ]
    return "\n\n".join(parts) + "\n"


def index(patterns: Sequence[Pattern]) -> str:
    rows = [f"| [{one.id}]({one.id}.md) | {one.title} | {one.confirmed_by} | {one.proof} |" for one in patterns]
    return "\n".join(
        [
            "# Root-cause patterns",
            "",
            "Generated from the files in `diagnosis/patterns/`, one each. How they are weighed is described in "
            "[diagnosis](../diagnosis.md).",
            "",
            "| pattern | what happens | confirmed by | proof |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def write(directory: Path, patterns: Sequence[Pattern]) -> None:
    """All pages; those of patterns that are gone are removed."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = {f"{pattern.id}.md": page(pattern) for pattern in patterns} | {"index.md": index(patterns)}
    for old in directory.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (directory / name).write_text(text)


def _frames(pattern: Pattern) -> str:
    if not pattern.signatures:
        return "None: a task that does not run, or does not enter the kernel, is not in a kernel profile."
    rows = ["| called by | hot | kernels | meaning |", "|---|---|---|---|"]
    rows += [
        f"| {_names(one.outer)} | {_names(one.inner) or 'itself'} | {_kernels(one)} | {one.means} |"
        for one in pattern.signatures
    ]
    least = f"At least {pattern.least_share * 100:.0f}% of {_SCOPES[pattern.scope]}."
    return least + "\n\n" + "\n".join(rows)


def _names(names: frozenset[str]) -> str:
    return " ".join(f"`{name}`" for name in sorted(names))


def _kernels(one: Signature) -> str:
    since = "" if one.since is None else f"from {one.since[0]}.{one.since[1]}"
    before = "" if one.before is None else f"before {one.before[0]}.{one.before[1]}"
    return " ".join(part for part in (since, before) if part) or "any"


def _lower(sentence: str) -> str:
    """As the second half of a sentence; names and numbers keep their first letter."""
    first, rest = sentence[:2], sentence[1:]
    return sentence if not first.isalpha() or first.isupper() or not first[1:].islower() else sentence[0].lower() + rest
