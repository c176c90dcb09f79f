"""The page of a pattern in the docs, made from its file: what it looks like, its frames, its numbers, what to do; and
the table of all thresholds.

`python -m zombiescope.diagnosis.patterns docs/patterns` writes all of them; a test holds them against the files.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from zombiescope.diagnosis import thresholds
from zombiescope.diagnosis.incident import Proof
from zombiescope.diagnosis.pattern import Pattern, Signature
from zombiescope.diagnosis.sample_index import SYSTEM_CALL

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
        _meanwhile(pattern),
        "## Frames",
        _frames(pattern),
        "## How it is known",
        f"Proof: {pattern.proof}, {PROOF[pattern.proof]}."
        + (f" From: {pattern.known_from}." if pattern.known_from else ""),
        _seen(pattern),
        f"As a Kubernetes event its reason is `{pattern.reason}`, and so is the name of its alert.",
    ]
    return "\n\n".join(parts) + "\n"


def index(patterns: Sequence[Pattern]) -> str:
    rows = [
        f"| [{one.id}]({one.id}.md) | {one.title} | {one.confirmed_by} | {one.proof} | {_kernels_seen(one) or 'none'} |"
        for one in patterns
    ]
    return "\n".join(
        [
            "# Root-cause patterns",
            "",
            "Generated from the files in `diagnosis/patterns/`, one each. How they are weighed is described in "
            "[diagnosis](../diagnosis.md).",
            "",
            "*Seen on* are the kernels on which it was made to happen and recorded; elsewhere its functions are known "
            "from the kernel's source and from reports.",
            "",
            "| pattern | what happens | confirmed by | proof | seen on |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def write(directory: Path, patterns: Sequence[Pattern]) -> None:
    """All pages; those of patterns that are gone are removed."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = {f"{pattern.id}.md": page(pattern) for pattern in patterns} | {"index.md": index(patterns)}
    wanted["thresholds.md"] = threshold_page()
    for old in directory.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (directory / name).write_text(text)


def _meanwhile(pattern: Pattern) -> str:
    """What helps until it is fixed, or why nothing does."""
    said = f"**Stop-gap**: {pattern.stop_gap or f'none; {pattern.no_stop_gap}'}."
    return f"{said}\n\n**No lasting fix**: {pattern.no_lasting}." if pattern.no_lasting else said


def _frames(pattern: Pattern) -> str:
    if not pattern.signatures:
        return "None: a task that does not run, or does not enter the kernel, is not in a kernel profile."
    rows = ["| called by | hot | kernels | meaning |", "|---|---|---|---|"]
    rows += [f"| {_names(one.outer)} | {_hot(one)} | {_kernels(one)} | {one.means} |" for one in pattern.signatures]
    entry = f" `{SYSTEM_CALL}NAME` is the system call's entry on any architecture." if _names_a_call(pattern) else ""
    least = f"At least {pattern.least_share * 100:.0f}% of {_SCOPES[pattern.scope]}."
    return least + entry + "\n\n" + "\n".join(rows)


def _names_a_call(pattern: Pattern) -> bool:
    return any(name.startswith(SYSTEM_CALL) for one in pattern.signatures for name in one.outer | one.inner)


def _kernels_seen(pattern: Pattern) -> str:
    return ", ".join(pattern.seen_on)


def _seen(pattern: Pattern) -> str:
    if not pattern.seen_on:
        return "Seen on: no kernel yet. It was never made to happen on a real one, and is known from others only."
    return f"Seen on: {_kernels_seen(pattern)}. Other kernels by the names in their source."


def _hot(one: Signature) -> str:
    return (_names(one.inner) or "itself") + (" (themselves)" if one.innermost else "")


def _names(names: frozenset[str]) -> str:
    return " ".join(f"`{name}`" for name in sorted(names))


def _kernels(one: Signature) -> str:
    """Of the mainline; distributions carry things back and forth."""
    since = "" if one.since is None else f"from {one.since[0]}.{one.since[1]}"
    before = "" if one.before is None else f"before {one.before[0]}.{one.before[1]}"
    bounds = " ".join(part for part in (since, before) if part)
    proof = f", or with {_names(one.proof)}" if bounds and one.proof else ""
    return bounds + proof if bounds else "any that has them"


def threshold_rows() -> Iterator[tuple[str, str, str, str, str]]:
    """Section, name, value, unit, and what the value rests on, in the order of the file."""
    text = Path(thresholds.__file__).read_text()
    titles = {
        number: line.strip("#- \n") for number, line in enumerate(text.splitlines(), 1) if line.startswith("# ---")
    }
    body = ast.parse(text).body
    for constant, said in pairwise(body):
        if isinstance(constant, ast.Assign) and isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant):
            unit, _, basis = " ".join(str(said.value.value).split()).removesuffix(".").partition("; ")
            section = titles[max(number for number in titles if number < constant.lineno)]
            yield section, ast.unparse(constant.targets[0]), ast.unparse(constant.value), unit, basis


def threshold_page() -> str:
    lines = ["# Thresholds of the diagnosis", "", (thresholds.__doc__ or "").strip().replace("\n\n", "\n\n")]
    section = ""
    for title, name, value, unit, basis in threshold_rows():
        if title != section:
            lines += [
                "",
                f"## {title[0].upper()}{title[1:]}",
                "",
                "| name | value | unit | basis |",
                "|---|---|---|---|",
            ]
            section = title
        lines.append(f"| `{name}` | `{value}` | {unit} | {basis} |")
    return "\n".join(lines) + "\n"


def _lower(sentence: str) -> str:
    """As the second half of a sentence; names and numbers keep their first letter."""
    first, rest = sentence[:2], sentence[1:]
    return sentence if not first.isalpha() or first.isupper() or not first[1:].islower() else sentence[0].lower() + rest
