"""Text that somebody else chose: names of processes, cgroups, containers, files; marks; answers of peers.

It is stored and sent as it is, and made harmless where it is shown: once, by whatever prints. Left as they are, such
characters move the cursor and set the title of a terminal (C0, C1, DEL), turn a line around (the bidirectional
controls) or begin a line that looks like one of ours.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """On one line, with everything that is no visible character written as an escape: \\x1b, \\u202e, \\n."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def number(text: str) -> int | None:
    """A decimal number that fits a counter of the kernel; None for anything else. int() itself takes digits of every
    script, and raises where there are some thousand of them."""
    return int(text) if len(text) <= 20 and text.isascii() and text.isdecimal() else None


def printable_lines(text: str) -> str:
    """The same for text of several lines."""
    return "\n".join(map(printable, text.split("\n")))
