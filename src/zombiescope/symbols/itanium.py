"""C++ names as the Itanium ABI mangles them (GCC, Clang): _ZNK4ArcI3FooEptEv is Arc<Foo>::operator->.

A function's own parameters and return type are left out, as perf leaves them out: a frame is a place, and overloads of
one function are one place to most readers. Parameters inside a name (of a function that a lambda stands in) are part
of it.

The demangler in libstdc++ does all of the grammar, and for 230 bytes of input gives 140 MB of output: substitutions
double. Names come from files that anybody may have made, so here every piece of text is bounded, and so is nesting.
What is beyond the bounds, or uses productions that hardly occur in names of functions (most expressions in template
arguments), raises NotMangledError and is shown as it is. Suffixes of compilers (.cold, .constprop.0) are left out: the
code is that function's.
"""

from __future__ import annotations

from zombiescope.symbols.itanium_codes import (
    FULL,
    FUNCTION_QUALIFIERS,
    OPERATORS,
    SPECIAL,
    STANDARD,
    SUFFIXES,
    NotMangledError,
    Type,
    argument_text,
    bounded,
    joined,
    last_part,
)
from zombiescope.symbols.itanium_types import TypeReader


def demangle(name: str) -> str:
    """The name after _Z; NotMangledError when it is none."""
    body = name.partition(".")[0]
    if not body.startswith("_Z"):
        raise NotMangledError
    reader = _Reader(body)
    text = reader.top()
    if reader.at != len(body):
        raise NotMangledError
    return text


class _Reader(TypeReader):
    # Names

    def top(self) -> str:
        for code, said in SPECIAL.items():
            if self.take(code):
                return said + joined(self.type())
        if self.take("GV"):
            return "guard variable for " + self.name()
        if self.peek(2) in ("TW", "TH"):
            said = "TLS wrapper function for " if self.peek(2) == "TW" else "TLS init function for "
            self.at += 2
            return said + self.name()
        if self.peek(2) in ("Th", "Tv", "Tc"):
            return self.thunk()
        name = self.name(outermost=True)
        self.skip_parameters()
        return name

    def thunk(self) -> str:
        kind = self.peek(2)
        self.at += 1 if kind != "Tc" else 2
        for _ in range(2 if kind == "Tc" else 1):
            self.offset()
        said = {"Th": "non-virtual thunk to ", "Tv": "virtual thunk to ", "Tc": "covariant return thunk to "}[kind]
        name = self.name(outermost=True)
        self.skip_parameters()
        return said + name

    def offset(self) -> None:
        parts = 1 if self.take("h") else 2 if self.take("v") else 0
        if not parts:
            raise NotMangledError
        for _ in range(parts):
            self.take("n")
            self.number()
            self.need("_")

    def skip_parameters(self) -> None:
        # What they are is not shown. Only a name that goes on with something else than types is none.
        if self.at < len(self.text):
            if self.text[self.at] not in "vwbcahstijlmxynofdegzPROCGFAMDSTNZULKVruEQ0123456789":
                raise NotMangledError
            self.at = len(self.text)

    def encoding(self) -> str:
        """A name with its parameters, as it stands in a local name."""
        saved = self.template_args
        self.qualifiers = ""
        name = self.name(outermost=True)
        qualifiers = self.qualifiers
        if self.peek() in ("E", "", "."):
            self.template_args = saved
            return name
        if self.is_template and not self.has_no_return:
            self.type()
        parameters = self.parameters(("E",))
        self.template_args = saved
        return bounded(f"{name}({parameters}){qualifiers}")

    def name(self, *, outermost: bool = False) -> str:
        self.enter()
        self.is_template = self.has_no_return = False
        try:
            if self.peek() == "N":
                return self.nested(outermost)
            if self.peek() == "Z":
                return self.local(outermost)
            if self.peek() == "S" and self.peek(2) != "St":
                found = joined(self.substitution())
                if self.peek() != "I":
                    raise NotMangledError
                return self.arguments(found, outermost)
            name = "std::" + self.unqualified("") if self.take("St") else self.unqualified("")
            if self.peek() == "I":
                self.remember((name, ""))
                name = self.arguments(name, outermost)
            return name
        finally:
            self.nesting -= 1

    def nested(self, outermost: bool) -> str:
        self.need("N")
        self.take("H")  # an explicit object parameter
        qualifiers = ""
        while self.peek() and self.peek() in FUNCTION_QUALIFIERS:
            mark = FUNCTION_QUALIFIERS[self.peek()]
            qualifiers = qualifiers + mark if mark[1] == "&" else mark + qualifiers
            self.at += 1
        name, last = "", ""
        self.is_template = self.has_no_return = False
        while not self.take("E"):
            self.enter()
            self.nesting -= 1
            if self.peek() == "I":
                if not name:
                    raise NotMangledError
                name = self.arguments(name, outermost)
                self.remember((name, ""))
                continue
            self.take("M")
            self.is_template = False
            is_substitution = self.peek() == "S" and self.peek(2) != "St"
            if self.take("St"):
                piece = "std"
            elif is_substitution:
                piece = joined(self.substitution())
            elif self.peek() == "T":
                piece = joined(self.template_parameter())
            elif self.peek(2) in ("Dt", "DT"):
                raise NotMangledError
            else:
                piece = self.unqualified(last)
            last = piece
            name = bounded(f"{name}::{piece}" if name else piece)
            if piece != "std" and not is_substitution:
                self.remember((name, ""))
        if not name:
            raise NotMangledError
        if self.substitutions and self.substitutions[-1][0] == name:
            self.substitutions.pop()
        self.qualifiers = qualifiers
        return name

    def local(self, outermost: bool) -> str:
        self.need("Z")
        function = self.encoding()
        self.need("E")
        if self.take("s"):
            self.discriminator()
            return function + "::string literal"
        if self.take("d"):
            if self.peek() != "_":
                self.number()
            self.need("_")
            return bounded(f"{function}::{self.name(outermost=outermost)}")
        inner = self.name(outermost=outermost)
        self.discriminator()
        return bounded(f"{function}::{inner}")

    def discriminator(self) -> None:
        if self.take("__"):
            self.number()
            self.need("_")
        elif self.peek() == "_" and self.peek(2)[1:].isdecimal():
            self.at += 2

    def unqualified(self, enclosing: str) -> str:
        self.take("L")
        char, pair = self.peek(), self.peek(2)
        if char.isdecimal():
            name = self.source_name()
        elif char == "C" and pair[1:] in "12345I" and pair != "C":
            self.at += 2
            if pair == "CI":
                self.at += 1
                self.type()
            self.has_no_return = True
            name = last_part(enclosing)
        elif char == "D" and pair[1:] in "01245" and pair != "D":
            self.at += 2
            self.has_no_return = True
            name = "~" + last_part(enclosing)
        elif pair == "Ut":
            self.at += 2
            name = f"{{unnamed type#{self.count()}}}"
        elif pair == "Ul":
            name = self.closure()
        elif pair == "DC":
            self.at += 2
            parts = []
            while not self.take("E"):
                parts.append(self.source_name())
            name = f"[{', '.join(parts)}]"
        else:
            name = self.operator()
        while self.take("B"):
            name = bounded(f"{name}[abi:{self.source_name()}]")
        return name

    def source_name(self) -> str:
        length = self.number()
        name = self.peek(length)
        if len(name) != length or not length:
            raise NotMangledError
        self.at += length
        return "(anonymous namespace)" if name.startswith("_GLOBAL__N_") else name

    def count(self) -> int:
        number = 1 if self.peek() == "_" else self.number() + 2
        self.need("_")
        return number

    def closure(self) -> str:
        self.need("Ul")
        while self.peek(2) in ("Ty", "Tn", "Tt", "Tp"):
            raise NotMangledError
        outer, self.in_closure = self.in_closure, True
        parameters = self.parameters(("E",))
        self.in_closure = outer
        self.need("E")
        return bounded(f"{{lambda({parameters})#{self.count()}}}")

    def operator(self) -> str:
        if self.take("cv"):
            self.has_no_return = True
            return bounded("operator " + joined(self.type()))
        if self.take("li"):
            return f'operator"" {self.source_name()}'
        code = self.peek(2)
        if code not in OPERATORS:
            raise NotMangledError
        self.at += 2
        return "operator" + OPERATORS[code]

    # Template arguments and what refers to them

    def arguments(self, before: str, outermost: bool = False) -> str:
        """A name with its template arguments."""
        self.need("I")
        self.enter()
        found: list[Type | list[Type]] = []
        if outermost:
            outer, self.template_args = self.template_args, found
        flags = self.has_no_return
        while not self.take("E"):
            if self.peek() == "Q":
                raise NotMangledError
            found.append(self.argument())
        self.nesting -= 1
        self.is_template, self.has_no_return = True, flags
        if outermost and not found:
            self.template_args = outer
        text = ", ".join(filter(None, (argument_text(one) for one in found)))
        opening = " <" if before.endswith("<") else "<"
        return bounded(f"{before}{opening}{text}{' ' if text.endswith('>') else ''}>")

    def argument(self) -> Type | list[Type]:
        if self.take("J"):
            self.enter()
            pack: list[Type] = []
            while not self.take("E"):
                one = self.argument()
                pack += one if isinstance(one, list) else [one]
            self.nesting -= 1
            return pack
        if self.take("L"):
            return (self.literal(), "")
        if self.take("XadL_Z"):
            text = "&" + self.encoding()
            self.need("EE")
            return (text, "")
        if self.peek() == "X":
            raise NotMangledError  # any other expression
        return self.type()

    def literal(self) -> str:
        if self.take("_Z"):
            text = "&" + self.encoding()
            self.need("E")
            return text
        code = self.peek()
        type_ = joined(self.type())
        sign = "-" if self.take("n") else ""
        end = self.text.find("E", self.at)
        if end < 0:
            raise NotMangledError
        value, self.at = self.text[self.at : end], end + 1
        if code == "b" and value in ("0", "1"):
            return "true" if value == "1" else "false"
        if code == "D" and type_ == "decltype(nullptr)":
            return "(decltype(nullptr))0"
        if not value.isdecimal():
            raise NotMangledError
        if code == "i":
            return sign + value
        return sign + value + SUFFIXES[code] if code in SUFFIXES else f"({type_}){sign}{value}"

    def template_parameter(self) -> Type:
        found = self.template_parameter_or_pack()
        if isinstance(found, list):
            return (", ".join(joined(one) for one in found), "")
        return found

    def template_parameter_or_pack(self) -> Type | list[Type]:
        self.need("T")
        index = 0 if self.peek() == "_" else self.number() + 1
        self.need("_")
        if self.in_closure:
            return self.remember((f"auto:{index + 1}", ""))
        if index >= len(self.template_args):
            raise NotMangledError
        found = self.template_args[index]
        self.remember((bounded(", ".join(map(joined, found))), "") if isinstance(found, list) else found)
        return found

    def substitution(self) -> Type:
        if self.peek(2) in STANDARD:
            text = STANDARD[self.peek(2)]
            self.at += 2
            if self.peek() in ("C", "D") and text != "std":
                # A constructor is named after the class in full: std::string's is basic_string's.
                text = FULL.get(text, text)
            return (text, "")
        self.need("S")
        end = self.text.find("_", self.at)
        digits, self.at = self.text[self.at : end], end + 1
        if end < 0 or not all(digit.isdecimal() or "A" <= digit <= "Z" for digit in digits) or len(digits) > 4:
            raise NotMangledError
        index = int(digits, 36) + 1 if digits else 0
        if index >= len(self.substitutions):
            raise NotMangledError
        return self.substitutions[index]
