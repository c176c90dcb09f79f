"""A figure with its name and what it is compared with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    value: str
    note: str = ""


def as_markdown(title: str, rows: list[Row]) -> str:
    lines = [f"### {title}", "", "| what | measured | |", "|---|---|---|"]
    lines += [f"| {row.name} | {row.value} | {row.note} |" for row in rows]
    return "\n".join(lines) + "\n"
