"""Options that had another name in the version before: the old one works, and a note has the new one."""

from __future__ import annotations

from collections.abc import Sequence

from zombiescope.cli.output import note

_PEERS = ("pyroscope", "parca", "otlp")
RENAMED: dict[tuple[str, ...], dict[str, str]] = {
    ("audit",): {"--live": "--systemd", "--no-live": "--no-systemd"},
    ("demo",): {"--keep": "--output"},
    ("lab", "run"): {"--keep": "--output"},
    ("lab", "score"): {"--keep": "--save-recordings", "--live": "--replay"},
}
"""Command -> old name -> new name."""


def current(arguments: Sequence[str]) -> list[str]:
    """The command line with today's names."""
    options = next((found for words, found in RENAMED.items() if tuple(arguments[: len(words)]) == words), {})
    changed = []
    for number, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        following = value if equals else next(iter(arguments[number + 1 :]), "")
        # Before, `push --to` named the peer.
        is_peer = arguments[0] == "push" and name == "--to" and following in _PEERS
        new = "--as" if is_peer else options.get(name)
        if new is not None:
            note(f"zombiescope {arguments[0]}: {name} is now {new}; the old name works until the next version")
        changed.append(f"{new or name}{equals}{value}")
    return changed
