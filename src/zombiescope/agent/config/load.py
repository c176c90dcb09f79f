"""The whole configuration: file, environment, every mistake."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from zombiescope.agent.config.document import MOST_BYTES, Mistake, NotYamlError, compose
from zombiescope.agent.config.environment import overrides
from zombiescope.agent.config.reader import Reader
from zombiescope.agent.config.setting import rule_of
from zombiescope.base.errors import UserError

DEFAULT = Path("/etc/zombiescope/agent.yaml")


class ConfigurationError(UserError):
    """The configuration cannot be used."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """`sections` by name; `mistakes` in the order of the file."""

    sections: dict[str, Any]
    mistakes: tuple[Mistake, ...]

    @property
    def unknown(self) -> list[Mistake]:
        return [mistake for mistake in self.mistakes if mistake.unknown]

    @property
    def wrong(self) -> list[Mistake]:
        return [mistake for mistake in self.mistakes if not mistake.unknown]


def load(path: Path | None, known: Mapping[str, type], environment: Mapping[str, str] = os.environ) -> Loaded:
    """Raises ConfigurationError when the file cannot be read at all. `path` None: the usual file, if there is one."""
    text = _text(path)
    return read(text, path.name if path is not None else DEFAULT.name, known, environment)


def read(text: str, name: str, known: Mapping[str, type], environment: Mapping[str, str]) -> Loaded:
    """The same from the file's text. Never raises."""
    given, mistakes = overrides(environment, known)
    reader = Reader(name, given, mistakes)
    try:
        root = compose(text, name)
    except NotYamlError as error:
        reader.mistakes.append(error.mistake)
        root = None
    sections = reader.sections(root, known)
    for kind, value in ((known[name], sections[name]) for name in sections):
        check = getattr(kind, "problems", None)
        if check is not None and value is not None:
            reader.mistakes.extend(Mistake(name, key, what, fix) for key, what, fix in value.problems())
    return Loaded(sections, tuple(sorted(reader.mistakes, key=lambda mistake: _line(mistake.where))))


def _line(where: str) -> int:
    """For the order of the file; what has no line stands first."""
    number = where.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _text(path: Path | None) -> str:
    place = path if path is not None else DEFAULT
    try:
        with open(place, "rb") as file:
            return file.read(MOST_BYTES + 1).decode("utf-8", "replace")
    except FileNotFoundError:
        if path is None:
            return ""
        raise ConfigurationError(f"{path}: there is no such file", "name the configuration with --config") from None
    except OSError as error:
        raise ConfigurationError(f"{place}: {error.strerror}", "let the agent's user read it") from None


def needs_restart(old: Any, new: Any, path: str) -> list[str]:
    """Paths of settings that differ and hold until the agent is started again."""
    return [
        f"{path}.{one.name}"
        for one in fields(old)
        if rule_of(one).fixed and getattr(old, one.name) != getattr(new, one.name)
    ]
