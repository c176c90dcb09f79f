"""Types in mangled C++ names: pointers, functions, arrays, members, and what qualifies them.

A type is what stands to the left and to the right of a name that has it: `int (*` and `)(char)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from zombiescope.symbols.itanium_codes import BUILTIN, BUILTIN_D, QUALIFIERS, NotMangledError, Type, bounded, joined
from zombiescope.symbols.itanium_cursor import Cursor


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
