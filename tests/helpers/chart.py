"""The Helm chart, rendered: its objects as documents."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/zombiescope"
HELM = Path(sys.executable).parent / "helm"

Document = dict[str, Any]


@cache
def render(*settings: str, kube: str = "1.31.0", namespace: str = "zombiescope") -> str:
    """As `helm template` prints it; settings as --set takes them. Raises CalledProcessError."""
    more = [word for one in settings for word in ("--set-json", one)]
    command = [
        str(HELM),
        "template",
        "zombiescope",
        str(CHART),
        "--namespace",
        namespace,
        "--kube-version",
        kube,
        *more,
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def objects(*settings: str, kube: str = "1.31.0", namespace: str = "zombiescope") -> list[Document]:
    return [one for one in yaml.safe_load_all(render(*settings, kube=kube, namespace=namespace)) if one]


def of_kind(found: list[Document], kind: str) -> list[Document]:
    return [one for one in found if one["kind"] == kind]
