"""Names of C++ and Rust functions as their authors wrote them; other names as they are.

Recordings hold names as the linker knows them: they are made readable here, when they are shown. Most names are not
mangled and cost a comparison; others 20 to 30 microseconds once, then the cache answers.
"""

from __future__ import annotations

import re
from functools import lru_cache

from zombiescope.symbols import itanium
from zombiescope.symbols.itanium_codes import NotMangledError

MAX_NAMES = 1 << 16
MAX_MANGLED = 4096


def demangle(name: str) -> str:
    """The readable form of a linker's name, or the name itself."""
    if not name.startswith("_") or len(name) > MAX_MANGLED:
        return name
    return _demangled(name) if name.startswith(("_Z", "_R")) else name


@lru_cache(maxsize=MAX_NAMES)
def _demangled(name: str) -> str:
    try:
        if name.startswith("_R"):
            return demangle_v0(name)
        try:
            return demangle_legacy(name)
        except NotRustError:
            return itanium.demangle(name)
    except (NotRustError, NotMangledError):
        return name


# --- Rust -------------------------------------------------------------------------------------------------------------
# Rust names: the legacy form, which looks like C++ (_ZN4core3fmt...17h<hash>E), and v0 (_RNvCs...7mycrate3foo).
#
# Hashes and the numbers that distinguish equal names are left out. v0 names refer back to parts of themselves, so that
# a short name can stand for a very long one: text, nesting and steps are bounded, and what is beyond that, or no such
# name, raises NotRustError.

MAX_TEXT = 8192
MAX_NESTING = 128
MAX_STEPS = 10_000


class NotRustError(ValueError):
    """This is no name that Rust's compiler made, or not one that can be read here."""


_LEGACY = re.compile(r"_ZN(?P<path>.+)17h[0-9a-f]{16}E(?:$|\.)")
_ESCAPE = re.compile(r"\$(u[0-9a-f]{1,6}|[A-Z]{1,2})\$|\.\.|\.")
_ESCAPES = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
_BASIC = {
    "a": "i8", "b": "bool", "c": "char", "d": "f64", "e": "str", "f": "f32", "h": "u8", "i": "isize", "j": "usize",
    "l": "i32", "m": "u32", "n": "i128", "o": "u128", "p": "_", "s": "i16", "t": "u16", "u": "()", "v": "...",
    "x": "i64", "y": "u64", "z": "!",
}  # fmt: skip
_SIGNED = frozenset("alnsxi")
_UNSIGNED = frozenset("hmotyj")


def demangle_legacy(name: str) -> str:
    """The path behind a legacy name."""
    found = _LEGACY.match(name)
    if found is None:
        raise NotRustError
    path, at, parts = found["path"], 0, []
    while at < len(path):
        digits = re.compile(r"\d{1,4}").match(path, at)
        if digits is None:
            raise NotRustError
        end = digits.end() + int(digits[0])
        part = path[digits.end() : end]
        if end > len(path) or not part:
            raise NotRustError
        # An underscore goes before a part that begins with an escape.
        parts.append(_ESCAPE.sub(_unescape, part[1:] if part.startswith("_$") else part))
        at = end
    return "::".join(parts)


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code is None:
        return "::" if found[0] == ".." else "."
    if code.startswith("u"):
        number = int(code[1:], 16)
        return chr(number) if 32 <= number < 0x110000 and chr(number).isprintable() else found[0]
    return _ESCAPES.get(code, found[0])


def demangle_v0(name: str) -> str:
    """The path behind a v0 name."""
    body = name.partition(".")[0]
    if not body.startswith("_R") or not body.isascii():
        raise NotRustError
    return _Reader(body[2:]).path(in_value=True)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.nesting = 0
        self.steps = 0
        self.lifetimes = 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def next(self) -> str:
        char = self.peek()
        if not char:
            raise NotRustError
        self.at += 1
        return char

    def take(self, char: str) -> bool:
        if self.peek() == char:
            self.at += 1
            return True
        return False

    def enter(self) -> None:
        self.nesting += 1
        self.steps += 1
        if self.nesting > MAX_NESTING or self.steps > MAX_STEPS:
            raise NotRustError

    def base62(self) -> int:
        value, digits = 0, 0
        while not self.take("_"):
            char = self.next()
            if not (char.isalnum() and digits < 12):
                raise NotRustError
            value = value * 62 + (int(char) if char.isdecimal() else ord(char) - (87 if char.islower() else 29))
            digits += 1
        return value + 1 if digits else 0

    def disambiguator(self) -> int:
        return self.base62() + 1 if self.take("s") else 0

    def identifier(self) -> str:
        is_punycode = self.take("u")
        digits = ""
        while self.peek().isdecimal() and digits != "0" and len(digits) < 5:
            digits += self.next()
        if not digits:
            raise NotRustError
        self.take("_")
        end = self.at + int(digits)
        text, self.at = self.text[self.at : end], end
        if end > len(self.text):
            raise NotRustError
        if not is_punycode:
            return text
        try:
            head, _, tail = text.rpartition("_")
            return f"{head}-{tail}".encode().decode("punycode") if head else tail.encode().decode("punycode")
        except (UnicodeError, ValueError):
            return f"punycode{{{text}}}"

    def back(self, in_value: bool, read: str) -> str:
        start = self.at - 1
        target = self.base62()
        if target >= start:
            raise NotRustError
        here, self.at = self.at, target
        text = self.path(in_value=in_value) if read == "path" else self.type() if read == "type" else self.const()
        self.at = here
        return text

    def path(self, *, in_value: bool = False) -> str:
        self.enter()
        text = _bounded(self.path_unguarded(in_value))
        self.nesting -= 1
        return text

    def path_unguarded(self, in_value: bool) -> str:
        kind = self.next()
        if kind == "C":
            self.disambiguator()
            return self.identifier()
        if kind in ("M", "X"):
            self.disambiguator()
            self.path()
            type_ = self.type()
            return f"<{type_}>" if kind == "M" else f"<{type_} as {self.path()}>"
        if kind == "Y":
            type_ = self.type()
            return f"<{type_} as {self.path()}>"
        if kind == "N":
            return self.nested(in_value)
        if kind == "I":
            return self.generic(in_value)
        if kind == "B":
            return self.back(in_value, "path")
        raise NotRustError

    def nested(self, in_value: bool) -> str:
        space = self.next()
        path = self.path(in_value=in_value)
        number = self.disambiguator()
        name = self.identifier()
        if space.isupper():
            kind = {"C": "closure", "S": "shim"}.get(space, space)
            return f"{path}::{{{kind}{':' if name else ''}{name}#{number}}}"
        return f"{path}::{name}" if name else path

    def generic(self, in_value: bool) -> str:
        path = self.path(in_value=in_value)
        arguments = []
        while not self.take("E"):
            arguments.append(self.argument())
        return f"{path}{'::' if in_value else ''}<{', '.join(arguments)}>"

    def argument(self) -> str:
        if self.take("L"):
            return self.lifetime(self.base62())
        if self.take("K"):
            return self.const()
        return self.type()

    def lifetime(self, number: int) -> str:
        if number == 0:
            return "'_"
        depth = self.lifetimes - number
        if depth < 0:
            raise NotRustError
        return f"'{chr(ord('a') + depth)}" if depth < 26 else f"'_{depth}"

    def binder(self) -> tuple[int, str]:
        if not self.take("G"):
            return 0, ""
        count = self.base62() + 1
        if count > 64:
            raise NotRustError
        self.lifetimes += count
        return count, f"for<{', '.join(self.lifetime(number) for number in range(count, 0, -1))}> "

    def type(self) -> str:
        self.enter()
        text = _bounded(self.type_unguarded())
        self.nesting -= 1
        return text

    def type_unguarded(self) -> str:
        kind = self.next()
        if kind in _BASIC:
            return _BASIC[kind]
        if kind in ("R", "Q"):
            lifetime = self.lifetime(number) + " " if self.take("L") and (number := self.base62()) else ""
            return f"&{lifetime}{'mut ' if kind == 'Q' else ''}{self.type()}"
        if kind in ("P", "O"):
            return f"*{'const' if kind == 'P' else 'mut'} {self.type()}"
        if kind == "A":
            type_ = self.type()
            return f"[{type_}; {self.const()}]"
        if kind == "S":
            return f"[{self.type()}]"
        if kind == "T":
            types = []
            while not self.take("E"):
                types.append(self.type())
            return f"({', '.join(types)}{',' if len(types) == 1 else ''})"
        if kind == "F":
            return self.function()
        if kind == "D":
            return self.dynamic()
        if kind == "B":
            return self.back(False, "type")
        self.at -= 1
        return self.path()

    def function(self) -> str:
        count, binder = self.binder()
        text = binder + ("unsafe " if self.take("U") else "")
        if self.take("K"):
            text += f'extern "{"C" if self.take("C") else self.identifier().replace("_", "-")}" '
        parameters = []
        while not self.take("E"):
            parameters.append(self.type())
        text += f"fn({', '.join(parameters)})"
        result = self.type()
        self.lifetimes -= count
        return text if result == "()" else f"{text} -> {result}"

    def dynamic(self) -> str:
        count, binder = self.binder()
        traits = []
        while not self.take("E"):
            traits.append(self.trait())
        self.lifetimes -= count
        if not self.take("L"):
            raise NotRustError
        number = self.base62()
        return f"dyn {binder}{' + '.join(traits)}" + (f" + {self.lifetime(number)}" if number else "")

    def trait(self) -> str:
        path = self.path()
        bindings = []
        while self.take("p"):
            name = self.identifier()
            bindings.append(f"{name} = {self.type()}")
        if not bindings:
            return path
        return f"{path[:-1]}, {', '.join(bindings)}>" if path.endswith(">") else f"{path}<{', '.join(bindings)}>"

    def const(self) -> str:
        self.enter()
        kind = self.next()
        self.nesting -= 1
        if kind == "p":
            return "_"
        if kind == "B":
            return self.back(False, "const")
        negative = kind in _SIGNED and self.take("n")
        end = self.text.find("_", self.at)
        digits, self.at = self.text[self.at : end], end + 1
        if end < 0 or not re.fullmatch(r"[0-9a-f]{0,32}", digits):
            raise NotRustError
        value = int(digits or "0", 16)
        if kind in _SIGNED or kind in _UNSIGNED:
            return f"{'-' if negative else ''}{value}"
        if kind == "b" and value < 2:
            return "true" if value else "false"
        if kind == "c" and value < 0x110000:
            return repr(chr(value))
        raise NotRustError


def _bounded(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise NotRustError
    return text
