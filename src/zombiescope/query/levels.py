"""Whom samples are counted by. Apart from what counts them, so that a command's options are made without numpy."""

from __future__ import annotations

from typing import Literal

Level = Literal["owner", "unit", "pod", "container", "image", "program", "process", "thread", "comm"]
"""`owner`: the unit, or the container as its pod calls it; of a task that has neither, its name. `program`: the script
or module behind an interpreter, else the name of the process, whatever its threads are called."""
GroupedBy = Literal["none", "owner", "unit", "pod", "container", "image", "program", "process", "thread", "comm"]
