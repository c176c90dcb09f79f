"""What the web page is built from: the lock file names every package by its hash, and no address."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

UI = Path(__file__).parents[2] / "ui"


def _packages() -> dict[str, dict[str, Any]]:
    lock = json.loads((UI / "package-lock.json").read_text())
    return {name: package for name, package in lock["packages"].items() if name}


def test_every_package_has_a_hash_and_no_address() -> None:
    packages = _packages()
    assert len(packages) > 20
    assert [name for name, package in packages.items() if not package.get("integrity", "").startswith("sha512-")] == []
    assert [name for name, package in packages.items() if "resolved" in package] == []


def test_what_the_page_runs_on_is_pinned_and_little() -> None:
    wanted = json.loads((UI / "package.json").read_text())
    assert set(wanted["dependencies"]) == {"preact", "@preact/signals"}
    every = {**wanted["dependencies"], **wanted["devDependencies"]}
    assert [name for name, version in every.items() if not version[0].isdigit()] == []


def test_the_lock_file_is_of_this_list() -> None:
    wanted = json.loads((UI / "package.json").read_text())
    locked = _packages()
    for name, version in {**wanted["dependencies"], **wanted["devDependencies"]}.items():
        assert locked[f"node_modules/{name}"]["version"] == version
