"""Our commands as somebody types them here: by name where the PATH leads to it, else by its path.

Whoever installed with pip or pipx types `zombiescope`; whoever ran `make` in a clone types `.venv/bin/zombiescope`, and
a hint that says otherwise is a command that is not found. Imports nothing heavy: `import` uses it on its short way.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

NAME = "zombiescope"
_HINT = re.compile(rf"(?<![\w/.-]){NAME} (?=[a-z]{{2,}})")


def called() -> str:
    """What to type for this command here."""
    own = _own()
    if own.name != NAME or shutil.which(NAME) == str(own):
        return NAME
    return shlex.quote(str(own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own))


def called_elsewhere() -> str:
    """What to type for it in another terminal, which may be in another directory."""
    return NAME if called() == NAME else shlex.quote(str(_own()))


def as_typed(text: str) -> str:
    """A text of ours with the commands in it as they are typed here."""
    return text if NAME not in text else _HINT.sub(lambda _: f"{called()} ", text)


def as_root(*words: str) -> str:
    """A command, or this very command line, by somebody who may do everything: sudo has a PATH of its own."""
    own = _own()
    return shlex.join(["sudo", str(own) if own.name == NAME else NAME, *(words or sys.argv[1:])])


def demo() -> str:
    """How to see the demonstration: in a clone that was set up by make, by make."""
    return "make demo" if called() == f".venv/bin/{NAME}" and Path("Makefile").exists() else f"{called()} demo"


def _own() -> Path:
    return Path.cwd() / sys.argv[0]
