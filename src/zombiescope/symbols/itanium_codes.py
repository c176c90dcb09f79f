"""What the Itanium C++ ABI's codes stand for, and how pieces of a name are put together."""

from __future__ import annotations

MAX_TEXT = 8192


class NotMangledError(ValueError):
    """This is no mangled name, or not one that can be read here."""


Type = tuple[str, str]
"""A type as it stands before and after the name it declares: int (*f)(char) is ("int (*", ")(char)")."""

BUILTIN = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double",
    "e": "long double", "g": "__float128", "z": "...",
}  # fmt: skip
BUILTIN_D = {
    "Dn": "decltype(nullptr)", "Di": "char32_t", "Ds": "char16_t", "Du": "char8_t", "Da": "auto",
    "Dc": "decltype(auto)", "Dh": "_Float16", "Df": "decimal32", "Dd": "decimal64", "De": "decimal128",
}  # fmt: skip
STANDARD = {
    "St": "std", "Sa": "std::allocator", "Sb": "std::basic_string", "Ss": "std::string", "Si": "std::istream",
    "So": "std::ostream", "Sd": "std::iostream",
}  # fmt: skip
OPERATORS = {
    "nw": " new", "na": " new[]", "dl": " delete", "da": " delete[]", "aw": " co_await", "ps": "+", "ng": "-",
    "ad": "&", "de": "*", "co": "~", "pl": "+", "mi": "-", "ml": "*", "dv": "/", "rm": "%", "an": "&", "or": "|",
    "eo": "^", "aS": "=", "pL": "+=", "mI": "-=", "mL": "*=", "dV": "/=", "rM": "%=", "aN": "&=", "oR": "|=",
    "eO": "^=", "ls": "<<", "rs": ">>", "lS": "<<=", "rS": ">>=", "eq": "==", "ne": "!=", "lt": "<", "gt": ">",
    "le": "<=", "ge": ">=", "ss": "<=>", "nt": "!", "aa": "&&", "oo": "||", "pp": "++", "mm": "--", "cm": ",",
    "pm": "->*", "pt": "->", "cl": "()", "ix": "[]", "qu": "?",
}  # fmt: skip
SPECIAL = {
    "TV": "vtable for ", "TT": "VTT for ", "TI": "typeinfo for ", "TS": "typeinfo name for ",
}  # fmt: skip
SUFFIXES = {"l": "l", "m": "ul", "x": "ll", "y": "ull", "j": "u"}
QUALIFIERS = {"r": " restrict", "V": " volatile", "K": " const"}
FUNCTION_QUALIFIERS = {**QUALIFIERS, "R": " &", "O": " &&"}
FULL = {
    "std::string": "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
    "std::istream": "std::basic_istream<char, std::char_traits<char> >",
    "std::ostream": "std::basic_ostream<char, std::char_traits<char> >",
    "std::iostream": "std::basic_iostream<char, std::char_traits<char> >",
}


def bounded(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise NotMangledError
    return text


def joined(type_: Type) -> str:
    left, right = type_
    if right.startswith("(") and left:
        return bounded(f"{left} {right}")
    return bounded(left + right)


def argument_text(argument: Type | list[Type]) -> str:
    if isinstance(argument, list):
        return bounded(", ".join(joined(one) for one in argument))
    return joined(argument)


def last_part(name: str) -> str:
    """The class of a constructor: its name without what encloses it and without its template arguments."""
    depth = 0
    end = len(name)
    for at in range(len(name) - 1, -1, -1):
        char = name[at]
        if char in ">)}":
            depth += 1
        elif char in "<({":
            depth -= 1
            if depth == 0 and char == "<":
                end = at
        elif char == ":" and depth == 0:
            return name[at + 1 : end]
    return name[:end]
