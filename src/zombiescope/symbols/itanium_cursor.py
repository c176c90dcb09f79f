"""Where a reader of mangled C++ names is in the text, what it remembers, and what bounds it."""

from __future__ import annotations

from zombiescope.symbols.itanium_codes import NotMangledError, Type

MAX_NESTING = 96
MAX_STEPS = 20_000


class Cursor:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 2
        self.substitutions: list[Type] = []
        self.template_args: list[Type | list[Type]] = []
        self.nesting = 0
        self.steps = 0
        self.is_template = False  # of the name read last: its parameters begin with the type it returns
        self.has_no_return = False
        self.qualifiers = ""  # of the member function read last
        self.in_closure = False

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def take(self, expected: str) -> bool:
        if self.text.startswith(expected, self.at):
            self.at += len(expected)
            return True
        return False

    def need(self, expected: str) -> None:
        if not self.take(expected):
            raise NotMangledError

    def number(self) -> int:
        start = self.at
        while self.peek().isdecimal() and self.at - start < 9:
            self.at += 1
        if start == self.at:
            raise NotMangledError
        return int(self.text[start : self.at])

    def enter(self) -> None:
        self.nesting += 1
        self.steps += 1
        if self.nesting > MAX_NESTING or self.steps > MAX_STEPS:
            raise NotMangledError

    def remember(self, type_: Type) -> Type:
        self.substitutions.append(type_)
        return type_
