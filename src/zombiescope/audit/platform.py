"""What a node is for, as its files show: the orchestrator that runs work on it, and the cloud it is in.

The hints are data (catalogue/platforms.toml). A unit counts where it starts by itself, a path where it is there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from zombiescope.audit.catalogue import Hint
from zombiescope.audit.finding import EvidenceLine
from zombiescope.audit.kernel_facts import KernelFacts
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files.starts import Start


@dataclass(frozen=True, slots=True)
class Platform:
    orchestrators: dict[str, EvidenceLine]
    """kubernetes, ecs, ... -> the evidence. There may be several."""
    clouds: dict[str, EvidenceLine]

    @property
    def name(self) -> str | None:
        return next(iter(self.orchestrators), None)

    def of_kind(self, kind: str) -> dict[str, EvidenceLine]:
        return self.clouds if kind == "cloud" else self.orchestrators


def detect(root: Root, starts: dict[str, Start], kernel: KernelFacts, hints: tuple[Hint, ...]) -> Platform:
    found: dict[str, dict[str, EvidenceLine]] = {"orchestrator": {}, "cloud": {}}
    for hint in hints:
        known = found[hint.kind]
        if hint.platform not in known:
            evidence = _evidence(hint, root, starts, kernel)
            if evidence is not None:
                known[hint.platform] = evidence
    return Platform(found["orchestrator"], found["cloud"])


def _evidence(hint: Hint, root: Root, starts: dict[str, Start], kernel: KernelFacts) -> EvidenceLine | None:
    if hint.unit:
        start = starts.get(hint.unit)
        return EvidenceLine(start.file, start.line, f"{hint.unit} is started here") if start else None
    if hint.kernel:
        for release, where in kernel.releases:
            if re.search(hint.kernel, release):
                return where
        return None
    if hint.holds:
        return _line_with(root, hint.path, hint.holds)
    found = root.status(hint.path) is not None
    return EvidenceLine(hint.path, None, f"{hint.path} exists") if found else None


def _line_with(root: Root, path: str, pattern: str) -> EvidenceLine | None:
    text = (root.read(path) or b"").decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(pattern, line):
            return EvidenceLine(path, number, line.strip())
    return None
