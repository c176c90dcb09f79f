"""Presets: what `systemctl preset-all` would enable, which systemd runs by itself at a first boot.

Lines "enable GLOB", "disable GLOB", "ignore GLOB" in *.preset; the first that matches a name counts, and a
unit that none matches is enabled. A boot is the first one where /etc/machine-id is missing or says
"uninitialized" (man machine-id); an empty file, as cloud images have, is not enough. At a first boot units
are only enabled, never disabled.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files import names
from zombiescope.node.systemd.unit_files.load_path import preset_files


@dataclass(frozen=True, slots=True)
class PresetRule:
    enable: bool | None
    """None: leave it as it is."""
    pattern: str
    instances: tuple[str, ...]
    file: str
    line: int


IGNORE_SINCE = 254
"""systemd 252 passes an ignore line over."""


def read(root: Root, systemd_version: int | None = None) -> tuple[PresetRule, ...]:
    knows_ignore = systemd_version is None or systemd_version >= IGNORE_SINCE
    verbs = ("enable", "disable", "ignore") if knows_ignore else ("enable", "disable")
    found = []
    for path in preset_files(root):
        text = (root.read(path) or b"").decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if len(words) >= 2 and words[0] in verbs:
                enable = {"enable": True, "disable": False, "ignore": None}[words[0]]
                found.append(PresetRule(enable, words[1], tuple(words[2:]), path, number))
    return tuple(found)


def decide(rules: tuple[PresetRule, ...], name: str) -> tuple[bool | None, PresetRule | None]:
    """(whether it is enabled, by which line)"""
    for rule in rules:
        if fnmatchcase(name, rule.pattern):
            return rule.enable, rule
        if names.template_of(name) == rule.pattern and names.split(name)[1] in rule.instances:
            return rule.enable, rule
    return True, None


def is_first_boot(root: Root) -> bool:
    if not root.is_directory("/etc"):
        return False
    identity = root.text("/etc/machine-id")
    return (identity is None and "/etc/machine-id" not in root.unread) or identity == "uninitialized"
