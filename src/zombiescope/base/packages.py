"""Python packages that zombiescope needs: a missing one is one line with the command that installs it here.

Which extra brings a package is read from our own metadata, so it is declared in pyproject.toml only. zombiescope is in
no public index, so the command depends on how it was installed: `kind_of_installation` looks at where it runs from.
"""

from __future__ import annotations

import re
import shlex
import sys
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from zombiescope.base import json as _json
from zombiescope.base.errors import UserError

Kind = Literal["clone", "package", "wheel"]

_MODULES = {"PyYAML": "yaml"}
"""Packages whose module has another name."""
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+).*?(?:extra == [\"'](\w+)[\"'])?$")
_OF_PACKAGES = ("/opt/zombiescope/", "/usr/lib/", "/usr/share/")
"""Where the Debian package, the archive and the image put it: with every extra, on an interpreter without pip."""


class MissingPackageError(UserError):
    """A package is not installed."""


def explained(error: Exception) -> Exception:
    """A module that one of our requirements brings and that is missing, as a UserError; any other error as it is."""
    if not isinstance(error, ModuleNotFoundError) or error.name not in (bringing := _by_module()):
        return error
    return MissingPackageError(f"the Python package {error.name} is not installed", install(bringing[error.name]))


def install(extra: str | None = None) -> str:
    """The command that installs zombiescope with an extra where this one is installed; a sentence where none does."""
    kind, place = kind_of_installation()
    wanted = f"[{extra}]" if extra else ""
    python = shlex.quote(sys.executable)
    if kind == "clone":
        return f"{python} -m pip install --editable {shlex.quote(f'{place}{wanted}')}"
    if kind == "package":
        return "the package brings it: install it again, as a whole"
    file = place or "zombiescope-VERSION.whl"
    return f"{python} -m pip install {shlex.quote(f'{file}{wanted}')}"


@lru_cache(maxsize=1)
def kind_of_installation() -> tuple[Kind, str]:
    """And the clone, or the wheel that it was installed from, where that is known."""
    own = Path(__file__).resolve()
    clone = own.parents[3]
    if (clone / "pyproject.toml").exists() and (clone / "src").is_dir():
        return "clone", str(clone)
    if str(own).startswith(_OF_PACKAGES):
        return "package", ""
    return "wheel", _wheel()


def _wheel() -> str:
    """As pip wrote it down (direct_url.json, PEP 610); empty where it came from an index."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        said = distribution("zombiescope").read_text("direct_url.json")
        url = urlsplit(str(_json.loads(said or "{}").get("url") or ""))
    except (PackageNotFoundError, ValueError, AttributeError):
        return ""
    return unquote(url.path) if url.scheme == "file" else ""


def _by_module() -> dict[str, str | None]:
    """Module -> the extra that brings it, None for a package that is always needed."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("zombiescope") or []
    except PackageNotFoundError:  # run from a source tree
        lines = []
    found: dict[str, str | None] = {}
    for name, extra in (match.groups() for line in lines if (match := _REQUIREMENT.match(line))):
        found.setdefault(_MODULES.get(name, name.lower().replace("-", "_")), extra)
    return found
