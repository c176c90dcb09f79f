"""Our own interpreter as a child: started so that nothing in the current directory stands in for a module of ours.

`python -m` and `python -c` put the current directory first on sys.path, so a `zombiescope/__init__.py` that somebody
left where root runs a command would be executed by it. -P (from 3.11 on) leaves it out. -I would also leave out the
user's own packages, among which we may be installed. An empty or relative entry of PYTHONPATH is the current directory
too (`PYTHONPATH=$PYTHONPATH:/x` makes one): children get the absolute ones.
"""

from __future__ import annotations

import os
import sys


def safe(*arguments: str) -> list[str]:
    """The command line of our interpreter."""
    return [sys.executable, "-P", *arguments]


def environment() -> dict[str, str]:
    """Ours, without what would bring the current directory back."""
    made = dict(os.environ)
    places = [place for place in made.pop("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(place)]  # noqa: PTH117
    return made | ({"PYTHONPATH": os.pathsep.join(places)} if places else {})


def module(name: str, *arguments: str) -> list[str]:
    """The command line that runs a module."""
    return safe("-m", name, *arguments)
