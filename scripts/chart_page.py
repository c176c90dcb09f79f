"""The chart's README.md: every value with its default, from the comments of values.yaml (`# -- `, as for helm-docs).

chart_page.py CHART > CHART/README.md
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

_HEAD = """\
# zombiescope

A recorder and live diagnosis on every node, as a DaemonSet. docs/kubernetes.md describes privileges and visibility.

    helm install zombiescope deploy/helm/zombiescope --namespace zombiescope --create-namespace
    kubectl label namespace zombiescope pod-security.kubernetes.io/enforce=privileged
    helm test zombiescope --namespace zombiescope

| value | default | |
|---|---|---|
"""
_KEY = re.compile(r"^( *)([A-Za-z][\w-]*):(.*)")


def rows(text: str, values: dict[str, object]) -> Iterator[str]:
    """One for each value that has a comment, or is a leaf at the top or below one that was shown."""
    said: list[str] = []
    path: list[str] = []
    for line in text.splitlines():
        comment = re.match(r" *# ?(?:-- )?(.*)", line)
        key = _KEY.match(line)
        if comment is not None:
            said = [*said, comment[1]] if "# --" not in line else [comment[1]]
            continue
        if key is None:
            said = []
            continue
        path = [*path[: len(key[1]) // 2], key[2]]
        found: object = values
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        is_block = not key[3].strip() and isinstance(found, dict)
        if found is not None and (said or not is_block):
            shown = "" if is_block else f"`{json.dumps(found)}`"
            shown = "see values.yaml" if len(shown) > 80 else shown
            yield f"| `{'.'.join(path)}` | {shown} | {' '.join(said).replace('|', chr(92) + '|')} |"
        said = []


if __name__ == "__main__":
    written = (Path(sys.argv[1]) / "values.yaml").read_text()
    sys.stdout.write(_HEAD + "\n".join(rows(written, yaml.safe_load(written))) + "\n")
