"""Labels from outside: an inventory as a CSV file, or what a command prints.

    node,rack,psu_vendor                the first column names the node, as its node= directory does
    gpu-017,r07,acme

    {"gpu-017": {"rack": "r07"}}        a command may print JSON instead

A label of the inventory replaces the node's own label of that name. An empty cell is no label. The command is started
without a shell, with a time limit, and what it prints is bounded.
"""

from __future__ import annotations

import csv
import io
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base.errors import UserError
from zombiescope.fleet.reading.identity import MOST_LABELS, MOST_OF_A_NAME
from zombiescope.fleet.statistics import NodeFigures
from zombiescope.fleet.tables import encodable

COMMAND_S = 60.0
MOST_BYTES = 64 << 20
NODE_COLUMNS = ("node", "name", "hostname", "host")


class InventoryError(UserError):
    """An inventory that cannot be used."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """Labels of nodes, from `source`."""

    source: str
    labels: Mapping[str, Mapping[str, str]]

    def of(self, node: str) -> Mapping[str, str]:
        return self.labels.get(node, {})

    def document(self, nodes: Iterable[NodeFigures]) -> dict[str, Any]:
        known = {node.node for node in nodes}
        return {
            "source": self.source, "nodes": len(self.labels), "matched": len(known & self.labels.keys()),
            "without": sorted(known - self.labels.keys()), "unknown": sorted(self.labels.keys() - known)[:100],
        }  # fmt: skip


def of_file(path: Path) -> Inventory:
    """Raises InventoryError."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InventoryError(f"{path} cannot be read: {error.strerror}", "name a CSV file with --labels") from error
    return _parsed(str(path), data)


def of_command(command: str) -> Inventory:
    """What a command prints. Raises InventoryError."""
    try:
        words = shlex.split(command)
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_S, check=False)  # noqa: S603 - the user's own command
    except subprocess.TimeoutExpired as error:
        raise InventoryError(f"{command!r} did not end within {COMMAND_S:g} s", "write its output to a file") from error
    except (OSError, ValueError, IndexError) as error:
        raise InventoryError(f"{command!r} cannot be started: {error}", "check --labels-command") from error
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it printed no error"]
        raise InventoryError(f"{command!r} exited with {done.returncode}: {last[0][:200]}", "check --labels-command")
    return _parsed(command, done.stdout)


def _parsed(source: str, data: bytes) -> Inventory:
    if len(data) > MOST_BYTES:
        raise InventoryError(f"{source}: the inventory is larger than {MOST_BYTES >> 20} MB", "leave columns out")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InventoryError(f"{source}: the inventory is not UTF-8", "save it as UTF-8") from error
    labels = _of_json(source, data) if text.lstrip().startswith("{") else _of_csv(source, text)
    if not labels:
        raise InventoryError(f"{source}: the inventory has no nodes", "its first column has to name the node")
    return Inventory(source, labels)


def _of_json(source: str, data: bytes) -> dict[str, dict[str, str]]:
    try:
        document = _json.loads(data)
    except ValueError as error:
        raise InventoryError(f"{source}: not valid JSON: {error}", 'write {"node": {"label": "value"}}') from error
    if not isinstance(document, dict) or not all(isinstance(each, dict) for each in document.values()):
        raise InventoryError(f"{source}: not an object of objects", 'write {"node": {"label": "value"}}')
    return {node: _bounded(labels.items()) for node, labels in document.items()}


def _of_csv(source: str, text: str) -> dict[str, dict[str, str]]:
    try:
        rows = csv.DictReader(io.StringIO(text), strict=True)
        names = list(rows.fieldnames or ())
        if len(names) < 2:
            raise InventoryError(f"{source}: the inventory has no labels", "write a header: node,rack,...")
        key = next((name for name in names if name.strip().lower() in NODE_COLUMNS), names[0])
        return {
            row[key].strip(): _bounded((name, value) for name, value in row.items() if name is not None and name != key)
            for row in rows
            if row.get(key)
        }
    except csv.Error as error:
        raise InventoryError(f"{source}: not valid CSV: {error}", "write a header: node,rack,...") from error


def _bounded(labels: Iterable[tuple[str, Any]]) -> dict[str, str]:
    kept: dict[str, str] = {}
    for name, value in labels:
        said = str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
        if said and name.strip() and len(kept) < MOST_LABELS:
            kept[encodable(name.strip()[:MOST_OF_A_NAME])] = encodable(said[:MOST_OF_A_NAME])
    return kept
