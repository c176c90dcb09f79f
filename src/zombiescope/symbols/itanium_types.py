"""Types in mangled C++ names: pointers, functions, arrays, members, and what qualifies them.

A type is what stands to the left and to the right of a name that has it: `int (*` and `)(char)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from zombiescope.symbols.itanium_codes import BUILTIN, BUILTIN_D, QUALIFIERS, NotMangledError, Type, bounded, joined

# --- reading the text -------------------------------------------------------------------------------------------------
# Where a reader of mangled C++ names is in the text, what it remembers, and what bounds it.

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


# --- itanium types ----------------------------------------------------------------------------------------------------


class TypeReader(Cursor, ABC):
    """Types hold names, and names hold types: those are read by whoever inherits this."""

    @abstractmethod
    def name(self, *, outermost: bool = False) -> str: ...

    @abstractmethod
    def source_name(self) -> str: ...

    @abstractmethod
    def arguments(self, before: str, outermost: bool = False) -> str: ...

    @abstractmethod
    def substitution(self) -> Type: ...

    @abstractmethod
    def template_parameter(self) -> Type: ...

    def type(self) -> Type:
        self.enter()
        flags = self.is_template, self.has_no_return
        try:
            return self.type_unguarded()
        finally:
            self.nesting -= 1
            self.is_template, self.has_no_return = flags

    def type_unguarded(self) -> Type:
        char = self.peek()
        if char in BUILTIN and char:
            self.at += 1
            return (BUILTIN[char], "")
        if char in QUALIFIERS and char:
            return self.qualified()
        reader: Callable[[], Type] | None = {
            "P": self.pointer, "R": self.pointer, "O": self.pointer, "F": self.function, "A": self.array,
            "M": self.member, "D": self.type_d, "S": self.type_s, "T": self.type_t, "u": self.vendor,
        }.get(char)  # fmt: skip
        if reader is not None:
            return reader()
        if char in ("N", "Z") or char.isdecimal():
            return self.remember((self.name(), ""))
        raise NotMangledError

    def qualified(self) -> Type:
        qualifiers = ""
        while self.peek() in QUALIFIERS and self.peek():
            qualifiers = QUALIFIERS[self.peek()] + qualifiers
            self.at += 1
        left, right = self.type()
        if right.startswith(("(", ")(")) and not left.endswith("*"):
            return self.remember((left, bounded(right + qualifiers)))
        return self.remember((bounded(left + qualifiers), right))

    def pointer(self) -> Type:
        mark = {"P": "*", "R": "&", "O": "&&"}[self.peek()]
        self.at += 1
        left, right = self.type()
        if mark[0] == "&" and left.endswith("&"):
            # A reference to a reference, made by a template's argument, is one.
            left = left.rstrip("&") + ("&" if mark == "&" or not left.endswith("&&") else "&&")
            return self.remember((left, right))
        if right.startswith(("(", " [")):
            return self.remember(
                (bounded(f"{left} ({mark}"), bounded(f"){right.lstrip() if right[0] == '(' else right}"))
            )
        return self.remember((bounded(left + mark), right))

    def function(self) -> Type:
        self.need("F")
        self.take("Y")
        result = joined(self.type())
        parameters = self.parameters(("E",))
        self.need("E")
        return self.remember((result, f"({parameters})"))

    def array(self) -> Type:
        self.need("A")
        end = self.text.find("_", self.at)
        size = self.text[self.at : end]
        if end < 0 or not (size.isdecimal() or not size):
            raise NotMangledError
        self.at = end + 1
        left, right = self.type()
        return self.remember((left, bounded(f" [{size}]{right.lstrip()}")))

    def member(self) -> Type:
        self.need("M")
        owner = joined(self.type())
        left, right = self.type()
        if right.startswith("("):
            return self.remember((bounded(f"{left} ({owner}::*"), bounded(f"){right}")))
        return self.remember((bounded(f"{left} {owner}::*"), right))

    def type_d(self) -> Type:
        code = self.peek(2)
        if code in BUILTIN_D:
            self.at += 2
            return (BUILTIN_D[code], "")
        if self.take("Dp"):
            return self.remember(self.type())
        if self.take("Do"):
            left, right = self.function()
            return (left, bounded(right + " noexcept"))
        raise NotMangledError

    def type_s(self) -> Type:
        if self.peek(2) == "St":
            return self.remember((self.name(), ""))
        found = self.substitution()
        if self.peek() == "I":
            return self.remember((self.arguments(joined(found)), ""))
        return found

    def type_t(self) -> Type:
        if self.peek(2) in ("Ts", "Tu", "Te"):
            self.at += 2
            return self.remember((self.name(), ""))
        found = self.template_parameter()
        if self.peek() == "I":
            return self.remember((self.arguments(joined(found)), ""))
        return found

    def vendor(self) -> Type:
        self.need("u")
        return self.remember((self.source_name(), ""))

    def parameters(self, ends: tuple[str, ...]) -> str:
        parts = []
        while self.peek() not in ends and self.peek() != "":
            parts.append(joined(self.type()))
        if parts == ["void"]:
            parts = []
        return bounded(", ".join(part for part in parts if part))
