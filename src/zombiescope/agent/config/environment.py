"""Settings from the environment: ZOMBIESCOPE_METRICS__LISTEN=0.0.0.0:9321 stands over metrics.listen of the file.

Two underscores part section and key, so that none is mistaken for another variable of ours (ZOMBIESCOPE_DIR).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass

from zombiescope.agent.config.document import Mistake
from zombiescope.agent.config.reader import Override, unknown_key
from zombiescope.agent.config.setting import declared

PREFIX = "ZOMBIESCOPE_"


def variable(path: str) -> str:
    """The name of the variable for a path."""
    return PREFIX + path.replace(".", "__").upper()


def overrides(
    environment: Mapping[str, str], sections: Mapping[str, type]
) -> tuple[dict[str, Override], list[Mistake]]:
    """What the environment sets, by path; and the variables that set nothing."""
    known = {variable(path): path for name, kind in sections.items() for path in _paths(name, kind)}
    found: dict[str, Override] = {}
    mistakes: list[Mistake] = []
    for name, text in sorted(environment.items()):
        if not name.startswith(PREFIX) or "__" not in name.removeprefix(PREFIX):
            continue
        if name in known:
            found[known[name]] = Override(name, text)
        else:
            mistakes.append(unknown_key("environment", name, list(known)))
    return found, mistakes


def _paths(above: str, kind: type) -> Iterator[str]:
    for one in declared(kind):
        path = f"{above}.{one.name}"
        if is_dataclass(one.type) and isinstance(one.type, type):
            yield from _paths(path, one.type)
        else:
            yield path
