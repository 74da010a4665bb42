"""Formulas as people write them, read into a tree: `2x + 3 = 11`, `15% of 80`, `1,200 × 3²`. Nothing is run here."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from mindstream.errors import ToolError

LONGEST, DEEPEST, LONGEST_NUMBER = 2_000, 50, 1_000
"""So many characters of a formula are read, nested so deep, with so many digits in a number."""
FUNCTIONS = frozenset({
    "sqrt", "cbrt", "abs", "round", "floor", "ceil", "min", "max", "sum", "mean", "factorial", "gcd", "lcm", "log",
    "ln", "log2", "log10", "exp", "sin", "cos", "tan", "asin", "acos", "atan",
})  # fmt: skip
CONSTANTS = frozenset({"pi", "e"})
WRITTEN = {
    "×": "*", "·": "*", "⋅": "*", "∙": "*", "÷": "/", "∕": "/", "\u2044": "/", "−": "-", "–": "-", "—": "-", "^": "**",
    "²": "**2", "³": "**3", "√": " sqrt ", "π": " pi ", "\u00a0": " ", "；": ";", "，": ", ", "％": "%",
}  # fmt: skip
_SIGN = re.compile("|".join(map(re.escape, WRITTEN)))
_VULGAR = re.compile(r"(\d*)([\u00bc-\u00be\u2150-\u215e])")
_ASIDE = re.compile(r"^\s*(?:please\s+)?(?:solve|calculate|compute|evaluate|what\s+is|find)\b:?\s*|[?\s]+$", re.I)
_FOR = re.compile(r"\s+for\s+\w+(?:\s*(?:,|and)\s*\w+)*\s*$", re.I)
_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3}(?!\w))?"
_TOKEN = re.compile(
    rf"\s*(?:(?P<thousands>\d{{1,3}}(?:,\d{{3}})+(?![\d,])(?:\.\d+)?)|(?P<number>{_NUMBER})"
    r"|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|//|[-+*/%!°(),=]))"
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number, exact; `percent`: it was written with a percent sign, and is a hundredth of that already."""

    value: Fraction
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """An unknown, a unit, or a constant."""

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator (`+ - * / // ** mod neg`) or a function of its arguments."""

    how: str
    to: tuple[Node, ...]


Node: TypeAlias = Number | Name | Apply


@dataclass(frozen=True, slots=True)
class Formula:
    """One statement: sides that are equal, or one side alone, which is asked for."""

    sides: tuple[Node, ...]


def read_formulas(text: str) -> list[Formula]:
    """Read statements that stand on lines of their own, or between `;`, a comma or `and`.

    Raises:
        ToolError: it is too long, too deep, or no formula.
    """
    if len(text) > LONGEST:
        raise ToolError(f"a formula has at most {LONGEST:,} characters, and that one has {len(text):,}")
    plain = _VULGAR.sub(lambda found: f"({found[1] or 0}+{unicodedata.normalize('NFKC', found[2])})", text)
    plain = unicodedata.normalize("NFKC", _SIGN.sub(lambda sign: WRITTEN[sign[0]], plain))
    plain = _FOR.sub("", _ASIDE.sub("", re.sub(r"[$€£¥₹](?=\s*[\d.])", "", _ASIDE.sub("", plain))))
    parts = [part for part in re.split(r"[;\n]|\band\b", plain) if part.strip()]
    if not parts:
        raise ToolError("there is no formula: write one, such as 15% of 80, or 2x + 3 = 11")
    return [formula for part in parts for formula in _Reader(_tokens(part)).statements()]


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str) -> list[_Token]:
    """Cut a text into tokens; `1,200` is one number, but two among the arguments of a function."""
    tokens, at, calls = list[_Token](), 0, list[bool]()
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ToolError(
                f"{text[at:].strip()[:20]!r} cannot be read here: write numbers, names, + - * / ^ ( ) % ! ="
            )
        kind, word = found.lastgroup or "", found[found.lastgroup or 0]
        at = found.end()
        if kind == "thousands" and any(calls[-1:]):
            short = word.partition(",")[0]
            kind, at, word = "number", found.start("thousands") + len(short), short
        if kind == "number" and re.match(r"[eE][+-]?\d", text[at:]):
            raise ToolError("an exponent has at most three digits")
        if len(word) > LONGEST_NUMBER:
            raise ToolError(f"a number or a name has at most {LONGEST_NUMBER:,} characters")
        if word == "(":
            calls.append(bool(tokens) and tokens[-1].text.lower() in FUNCTIONS)
        elif word == ")" and calls:
            calls.pop()
        tokens.append(
            _Token("number" if kind == "thousands" else kind, word.replace(",", "") if len(word) > 1 else word)
        )
    return tokens


@dataclass
class _Reader:
    """Reads tokens by precedence: sums, products, signs, powers, what stands behind."""

    tokens: list[_Token]
    at: int = 0
    depth: int = 0
    divided: list[bool] = field(default_factory=lambda: [False])

    def statements(self) -> list[Formula]:
        found = [self._statement()]
        while self._take(","):
            found.append(self._statement())
        if self.at < len(self.tokens):
            raise ToolError(f"{self._next()!r} cannot stand where it stands; words are not understood, only formulas")
        return found

    def _statement(self) -> Formula:
        sides = [self._sum()]
        while self._take("="):
            sides.append(self._sum())
        return Formula(tuple(sides))

    def _next(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def _kind(self) -> str:
        return self.tokens[self.at].kind if self.at < len(self.tokens) else ""

    def _take(self, *signs: str) -> str:
        if (sign := self._next().lower()) in signs and sign:
            self.at += 1
            return sign
        return ""

    def _deeper(self, read: Callable[[], Node]) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ToolError(f"a formula is nested at most {DEEPEST} deep")
        node = read()
        self.depth -= 1
        return node

    def _sum(self) -> Node:
        node = self._product()
        while sign := self._take("+", "-"):
            right = self._product()
            if isinstance(right, Number) and right.percent and not (isinstance(node, Number) and node.percent):
                right = Apply("*", (node, right))  # 80 + 15% is 92
            node = Apply(sign, (node, right))
        return node

    def _product(self) -> Node:
        node, divided = self._signed(), False
        while True:
            if sign := self._take("*", "/", "//", "of", "mod"):
                divided = sign == "/"
                node = Apply("*" if sign == "of" else sign, (node, self._signed()))
            elif self._kind() == "name" and self._next() in ("x", "X") and self._is_number(self.at + 1):
                self.at += 1  # 3 x 4
                node = Apply("*", (node, self._signed()))
            elif self._kind() == "name" or self._next() == "(":
                if divided:
                    raise ToolError(
                        "a division before a product without a sign can be meant in two ways: use ( ) and *"
                    )
                if self.tokens[self.at - 1].kind == "name" and self._kind() == "name":
                    raise ToolError(
                        f"{self.tokens[self.at - 1].text!r} and {self._next()!r} stand side by side: words are not"
                        " understood, only formulas; write * between two names that are multiplied"
                    )
                node = Apply("*", (node, self._power()))
            else:
                return node

    def _is_number(self, at: int) -> bool:
        return 0 < at < len(self.tokens) and self.tokens[at].kind == self.tokens[at - 2].kind == "number"

    def _signed(self) -> Node:
        if sign := self._take("+", "-"):
            node = self._deeper(self._signed)
            return Apply("neg", (node,)) if sign == "-" else node
        return self._power()

    def _power(self) -> Node:
        base = self._behind(self._atom())
        return Apply("**", (base, self._deeper(self._signed))) if self._take("**") else base

    def _behind(self, node: Node) -> Node:
        """Read the signs that stand behind a number: %, !, °."""
        while sign := self._take("%", "!", "°"):
            if sign == "!":
                node = Apply("factorial", (node,))
            elif sign == "°":
                node = Apply("*", (node, Apply("/", (Name("pi"), Number(Fraction(180))))))
            elif self._kind() == "number":
                return Apply("mod", (node, self._signed()))
            elif isinstance(node, Number):
                node = Number(node.value / 100, percent=True)
            else:
                node = Apply("/", (node, Number(Fraction(100))))
        return node

    def _atom(self) -> Node:
        kind, text = self._kind(), self._next()
        self.at += 1
        if kind == "number":
            return Number(Fraction(text))
        if kind == "name" and text.lower() in FUNCTIONS and self._next() == "(":
            return Apply(text.lower(), self._arguments())
        if kind == "name" and text.lower() in FUNCTIONS and self._kind() == "number":  # √2
            return Apply(text.lower(), (self._atom(),))
        if kind == "name":
            return Name(text)
        if text == "(":
            node = self._deeper(self._sum)
            self._close()
            return node
        raise ToolError(f"a number or a name is missing {f'before {text!r}' if text else 'at the end'}")

    def _arguments(self) -> tuple[Node, ...]:
        self.at += 1
        found = [self._deeper(self._sum)]
        while self._take(","):
            found.append(self._deeper(self._sum))
        self._close()
        return tuple(found)

    def _close(self) -> None:
        if not self._take(")"):
            raise ToolError("a bracket is opened and not closed")
