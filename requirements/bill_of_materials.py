"""What we ship besides our own code, as a CycloneDX document and as a page: read from the two lock files.

`make sbom` writes dist/zombiescope.cdx.json; `make lock` writes docs/licences.md anew, which a test compares with the
locks. Versions and hashes come from requirements/runtime.txt and ui/package-lock.json, so the answer does not depend on
what happens to be installed; licences come from the metadata of the installed packages and from the page's lock.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.markers import Marker

ROOT = Path(__file__).resolve().parent.parent
NOT_DECLARED = "not declared"
SPDX_OF_CLASSIFIER = {
    "MIT License": "MIT",
    "ISC License (ISCL)": "ISC",
    "BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
}
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;]+)(?: ; (.*?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Component:
    """One package of one lock file."""

    name: str
    version: str
    kind: str
    """The registry's kind in a package URL: pypi or npm."""
    licence: str
    hashes: tuple[tuple[str, str], ...]

    @property
    def purl(self) -> str:
        return f"pkg:{self.kind}/{self.name.replace('@', '%40')}@{self.version}"


def of_python(lock: str) -> Iterator[Component]:
    """Those that are installed on Linux; of several versions each, with the Python that it is for left open."""
    found: list[tuple[str, str, list[str]]] = []
    for line in lock.splitlines():
        pinned = _PINNED.match(line)
        if pinned is not None:
            name, version, marker = pinned.groups()
            found.append((name, version, []) if _is_for_linux(marker) else ("", "", []))
        elif found and (digest := _HASH.search(line)):
            found[-1][2].append(digest[1])
    for name, version, digests in found:
        if name:
            yield Component(name, version, "pypi", licence_of(name), tuple(("SHA-256", each) for each in digests))


def of_page(lock: dict[str, Any]) -> Iterator[Component]:
    """What is compiled into the page; what only builds it is not shipped."""
    for place, package in sorted(lock["packages"].items()):
        if place and not package.get("dev") and not package.get("optional"):
            kind, _, digest = package["integrity"].partition("-")
            named = {"sha512": "SHA-512", "sha256": "SHA-256"}[kind]
            hashes = ((named, base64.b64decode(digest).hex()),)
            licence = str(package.get("license", NOT_DECLARED))
            yield Component(place.removeprefix("node_modules/"), package["version"], "npm", licence, hashes)


def licence_of(name: str) -> str:
    """As the installed package declares it."""
    try:
        declared = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return NOT_DECLARED
    if "License-Expression" in declared:
        return declared["License-Expression"]
    for classifier in declared.get_all("Classifier") or []:
        spdx = SPDX_OF_CLASSIFIER.get(classifier.rpartition(" :: ")[2])
        if classifier.startswith("License") and spdx:
            return spdx
    return declared["License"].splitlines()[0] if "License" in declared else NOT_DECLARED


def components() -> list[Component]:
    python = of_python((ROOT / "requirements/runtime.txt").read_text())
    page = of_page(json.loads((ROOT / "ui/package-lock.json").read_text()))
    return [*python, *page]


def document(parts: list[Component]) -> dict[str, Any]:
    """CycloneDX 1.6. No serial number and no time: the same locks give the same file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    own = f"pkg:pypi/{name}@{version}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "bom-ref": own, "name": name, "version": version, "purl": own}
        },
        "components": [_component(each) for each in parts],
        "dependencies": [{"ref": own, "dependsOn": [each.purl for each in parts]}],
    }


def page(parts: list[Component]) -> str:
    lines = [
        "# What we ship, and under which licences",
        "",
        "Written by `make lock` from the lock files; `make sbom` writes the same with hashes, as CycloneDX. What only",
        "builds or tests the product is not in it.",
        "",
        "| package | version | from | licence |",
        "|---|---|---|---|",
    ]
    rows = [f"| {each.name} | {each.version} | {each.kind} | {each.licence} |" for each in parts]
    return "\n".join([*lines, *rows, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="store_true", help="print the page of licences instead")
    parts = components()
    sys.stdout.write(page(parts) if parser.parse_args().page else json.dumps(document(parts), indent=2) + "\n")
    return 0


def _component(part: Component) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": part.purl,
        "name": part.name,
        "version": part.version,
        "purl": part.purl,
        "licenses": [{"expression": part.licence}] if part.licence != NOT_DECLARED else [],
        "hashes": [{"alg": kind, "content": digest} for kind, digest in part.hashes],
    }


def _is_for_linux(marker: str | None) -> bool:
    """On some Python: a lock for several of them has the same package twice."""
    linux = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    pythons = [{"python_full_version": f"3.{minor}.0", "python_version": f"3.{minor}"} for minor in range(11, 16)]
    return marker is None or any(Marker(marker).evaluate({**linux, **python}) for python in pythons)


if __name__ == "__main__":
    raise SystemExit(main())
