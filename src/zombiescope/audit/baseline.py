"""The file of `--allow`: findings that somebody has accepted, each with the reason.

One a line: the id, blanks, the reason. Lines that begin with # and empty lines are left out. A line without a reason
is refused: whoever reads the file in a year has to know why.

    endless-restart:containerd.service   kubelet is of no use without it
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zombiescope.audit.finding import Finding
from zombiescope.base.errors import UserError


class BaselineError(UserError):
    """A line that cannot be used."""


@dataclass(frozen=True, slots=True)
class Allowed:
    id: str
    reason: str
    line: int


def parse(data: bytes, name: str) -> tuple[Allowed, ...]:
    found = []
    for number, raw in enumerate(data.splitlines(), 1):
        try:
            line = raw.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise BaselineError(f"{name}, line {number}: not UTF-8", "is it a list of accepted findings?") from error
        if not line or line.startswith("#"):
            continue
        identity, *rest = line.split(None, 1)
        if not rest:
            raise BaselineError(f"{name}, line {number}: {identity} has no reason", "write it after the id")
        found.append(Allowed(identity, rest[0], number))
    return tuple(found)


def write(findings: Iterable[Finding]) -> str:
    """The file that allows all of these; its reasons are for a person to write."""
    lines = [
        "# Findings of `zombiescope audit` that are accepted: the id, then why. New ones still fail.",
        *(f"{finding.id}  accepted as found; write why" for finding in findings),
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class BaselineDiff:
    new: tuple[Finding, ...]
    allowed: tuple[tuple[Finding, Allowed], ...]
    stale: tuple[Allowed, ...]
    """Lines whose finding is gone."""


def split(findings: Iterable[Finding], lines: Iterable[Allowed]) -> BaselineDiff:
    by_id = {line.id: line for line in lines}
    new: list[Finding] = []
    allowed: list[tuple[Finding, Allowed]] = []
    for finding in findings:
        line = by_id.get(finding.id)
        if line is None:
            new.append(finding)
        else:
            allowed.append((finding, line))
    met = {line.id for _, line in allowed}
    return BaselineDiff(tuple(new), tuple(allowed), tuple(line for line in by_id.values() if line.id not in met))
