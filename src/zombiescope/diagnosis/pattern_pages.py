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
from zombiescope.diagnosis.pattern import FALLBACK, Pattern, Signature
from zombiescope.diagnosis.sample_index import SYSTEM_CALL

PROOF: dict[Proof, str] = {
    "kernel": "reproduced on a real kernel, recorded and diagnosed",
    "golden": "replayed from a documented case",
    "literature": "known only from literature; its confidence stays at or below 0.6",
}
_SCOPES = {
    "hog": "the hog's kernel samples",
    "core": "the core's kernel samples, including interrupts charged to other tasks",
    "node": "all kernel samples of the node",
}


def page(pattern: Pattern) -> str:
    """Markdown."""
    parts = [
        f"# {pattern.id}: {pattern.title}",
        pattern.looks_like,
        "## How to fix it",
        pattern.remedy,
        _until_fixed(pattern),
        "On the node, `zombiescope diagnose --last 10m` names the process and the culprit, and `zombiescope fix "
        "--incident ID` shows the plan; it changes nothing without `--apply`.",
        "## How it is recognised",
        f"**Confirmed by:** {pattern.confirmed_by}",
        f"**Refuted by:** {pattern.refuted_by}",
        *_actors(pattern),
        "## Frames",
        _frames(pattern),
        "## How it is known",
        *_proof(pattern),
        f"In Kubernetes Events the reason is `{pattern.reason}`; alerts from the webhook use the same name. In "
        f'Prometheus it is the alert `ZombiescopeIncident` with `cause="{pattern.id}"`.',
    ]
    return "\n\n".join(parts) + "\n"


def index(patterns: Sequence[Pattern]) -> str:
    rows = [
        f"| [{one.id}]({one.id}.md) | {one.title} | {one.confirmed_by} | {one.proof} | {_kernels_seen(one) or 'none'} "
        f"| {one.repair} |"
        for one in patterns
    ]
    return "\n".join(
        [
            "# Root-cause patterns",
            "",
            _counted(patterns),
            "",
            "*Seen on* lists the kernels on which it was reproduced and recorded; for others its functions are known",
            "from the kernel's source and from reports. [Diagnosis](../diagnosis.md) describes how patterns",
            "are weighed. A pattern without a kernel needs [a scenario](../how-to/add-a-scenario.md): contributions",
            "are welcome.",
            "",
            "*Repair* is what a repair system may do to the node ([table](../integrations.md#repair)); NONE where",
            "the plan ends the cause on the node.",
            "",
            "| pattern | what happens | confirmed by | proof | seen on | repair |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _counted(patterns: Sequence[Pattern]) -> str:
    causes = [one for one in patterns if one.id != FALLBACK]
    real = sum(one.proof == "kernel" for one in causes)
    return (
        f"zombiescope knows {len(causes)} causes. **{real} were reproduced on a real kernel**, recorded and diagnosed; "
        f"**{len(causes) - real} are known from literature only**, and their confidence stays at or below 0.6. "
        f"[{FALLBACK}]({FALLBACK}.md) is the answer when none of them matches."
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


def _actors(pattern: Pattern) -> list[str]:
    named = (("Hog", pattern.hog), ("Culprit", pattern.culprit))
    shown = [f"**{name}:** {who}" for name, who in named if who and not who.startswith(("No process", "Not known"))]
    return ["  \n".join(shown)] if shown else []


def _proof(pattern: Pattern) -> list[str]:
    if pattern.id == FALLBACK:
        return ["This is the answer when no pattern matches; it has no confidence score."]
    known = f"Proof: {pattern.proof}, {PROOF[pattern.proof]}."
    return [known + (f" From: {pattern.known_from}." if pattern.known_from else ""), _seen(pattern)]


def _until_fixed(pattern: Pattern) -> str:
    """What helps until it is fixed, or why nothing does."""
    said = f"**Stop-gap**: {pattern.stop_gap or f'none; {pattern.no_stop_gap}'}."
    return f"{said}\n\n**No lasting fix**: {pattern.no_lasting}." if pattern.no_lasting else said


def _frames(pattern: Pattern) -> str:
    if not pattern.signatures:
        return "None: a task that does not run, or does not enter the kernel, does not appear in a kernel profile."
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
        return "Seen on: no kernel yet. It has not been reproduced; it is known only from other people's reports."
    return (
        f"Seen on: {_kernels_seen(pattern)}. On other kernels it is recognised by the function names in their source."
    )


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
