"""What the self-test found out: a document for programs, and one line for a person.

The line is made here and nowhere else; the recorder, the agent, `up`, `status` and the command pass it on. Only the
standard library is imported: the process that starts a self-test may not have the libraries that fail in it.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

LIBRARIES = ("numpy", "pyarrow", "zstandard")
"""What a diagnosis pass computes with, besides Python and our own native module."""
OWN_ENVIRONMENT = "install zombiescope in its own environment (python3 -m venv DIR && DIR/bin/pip install WHEEL)"
REINSTALL = "reinstall it (pip install --force-reinstall --no-deps WHEEL)"
MEMORY = "raise the memory limit of its unit or container (a pass needs about 200 MB)"
AGAIN = f"run `zombiescope selftest` again; if this repeats on an idle machine, {OWN_ENVIRONMENT}"


@dataclass(frozen=True, slots=True)
class Outcome:
    ok: bool
    why: str = ""
    """What failed; empty when it passed."""
    fix: str = ""
    found: dict[str, Any] | None = None
    """What the pass found; None when it gave no answer."""
    seconds: float | None = None
    cpu_us: int | None = None
    libraries: dict[str, str] = field(default_factory=dict)
    """Name -> version."""

    @property
    def problem(self) -> str:
        """What a person must know, on one line; empty when it passed."""
        return "" if self.ok else _one_line(f"the self-test failed: {self.why}; incidents may not be detected")

    @property
    def text(self) -> str:
        """The same, and what fixes it."""
        return "the self-test passed" if self.ok else _one_line(f"{self.problem}; {self.fix}")

    def document(self) -> dict[str, Any]:
        """As the standby process reports it in its `ready` line."""
        return asdict(self) | {"text": self.text}

    @classmethod
    def of(cls, document: dict[str, Any]) -> Outcome:
        """From such a document."""
        known = {name: document[name] for name in cls.__slots__ if name in document}
        return cls(**known)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def libraries() -> dict[str, str]:
    """The versions that this environment has; of loaded libraries those that are loaded."""
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    found = {name: getattr(sys.modules.get(name), "__version__", None) or _installed(name) for name in LIBRARIES}
    return versions | {name: version for name, version in found.items() if version}


def _installed(name: str) -> str | None:
    from importlib import metadata  # a process that has loaded the libraries needs none of this

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def named(versions: dict[str, str]) -> str:
    """pyarrow 20.0.0, numpy 2.0.0: those that matter in a crash."""
    mattering = (name for name in ("pyarrow", "numpy", "python") if name in versions)
    return ", ".join(f"{name.capitalize() if name == 'python' else name} {versions[name]}" for name in mattering)


def signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
