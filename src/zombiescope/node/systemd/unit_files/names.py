"""Names of units: prefix, instance and type, and which other names share settings with one.

foo-bar@x.service is an instance of the template foo-bar@.service. Its drop-ins are looked for under its own
name, its template's, and every prefix that ends in a dash (foo-@x.service.d, foo-@.service.d).
"""

from __future__ import annotations

import re

TYPES = frozenset(
    {"service", "socket", "target", "device", "mount", "automount", "swap", "timer", "path", "slice", "scope"}
)
LENGTH_MAX = 255

_CHARACTERS = re.compile(r"[A-Za-z0-9:_.\\@-]+\Z")


def is_valid(name: str) -> bool:
    """Whether systemd takes a file of this name for a unit."""
    prefix, dot, kind = name.rpartition(".")
    if not dot or kind not in TYPES or len(name) > LENGTH_MAX:
        return False
    return bool(_CHARACTERS.match(prefix)) and not prefix.startswith("@")


def kind_of(name: str) -> str:
    """service of ssh.service."""
    return name.rpartition(".")[2]


def split(name: str) -> tuple[str, str | None, str]:
    """(prefix, instance, type); the instance is "" for a template and None for a plain unit."""
    stem, _, kind = name.rpartition(".")
    prefix, at, instance = stem.partition("@")
    return prefix, instance if at else None, kind


def build(prefix: str, instance: str | None, kind: str) -> str:
    return f"{prefix}.{kind}" if instance is None else f"{prefix}@{instance}.{kind}"


def is_template(name: str) -> bool:
    return split(name)[1] == ""


def is_instance(name: str) -> bool:
    return bool(split(name)[1])


def template_of(name: str) -> str | None:
    """foo@.service of foo@x.service; None for what is no instance."""
    prefix, instance, kind = split(name)
    return build(prefix, "", kind) if instance else None


def with_instance(template: str, instance: str) -> str:
    prefix, _, kind = split(template)
    return build(prefix, instance, kind)


def sharing(name: str) -> list[str]:
    """The names whose drop-in directories count for a unit, the most specific first."""
    found: dict[str, None] = {}
    left = [name]
    while left:
        one = left.pop()
        if one in found:
            continue
        found[one] = None
        prefix, instance, kind = split(one)
        shorter = _shorter_prefix(prefix)
        if shorter is not None:
            # A template's own prefixes are plain names: systemd builds them without the @.
            left.append(build(shorter, instance or None, kind))
        template = template_of(one)
        if template is not None:
            left.append(template)
    return list(found)


def _shorter_prefix(prefix: str) -> str | None:
    """foo-bar -> foo-, foo- -> None, foo-bar- -> foo-; one trailing dash is cut off before looking."""
    stem = prefix.removesuffix("-")
    dash = stem.rfind("-")
    return stem[: dash + 1] if dash > 0 else None


def unescape(text: str) -> str:
    """What %I makes of an instance: - is /, \\x2d is -."""
    return re.sub(r"\\x([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), text.replace("-", "/"))
