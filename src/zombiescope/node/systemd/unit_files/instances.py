"""How far instances of templates are followed.

A template may name instances of itself in terms of the instance: `Wants=a@%i0.service a@%i1.service` has no end but the
length of a name. Those that a link or a preset names are as many as there are files, and do not count.
"""

from __future__ import annotations

from zombiescope.node.systemd.unit_files import names

MOST = 1024


class Instances:
    """Of one walk."""

    def __init__(self, endless: set[str]) -> None:
        """`endless` gets the templates of which there were more."""
        self._endless = endless
        self._followed: set[str] = set()

    def follows(self, name: str) -> bool:
        template = names.template_of(name)
        if template is None or name in self._followed:
            return True
        if len(self._followed) >= MOST:
            self._endless.add(template)
            return False
        self._followed.add(name)
        return True
