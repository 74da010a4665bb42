r"""Regular expressions that no text can make slow: RE2 searches in linear time; look-arounds are checked in a second
step.

Syntax and matches are those of Python's `re` with IGNORECASE. RE2 has no look-arounds, and its `\w`, `\b` and similar
classes are ASCII only. Therefore RE2 searches for a *relaxed* pattern without these parts, which matches at least where
the original does. If it matches, `regex` searches for the original, unless both match exactly the same texts. Some
texts make `regex` slow, so this search runs on windows of the text and has a time limit.
"""

from __future__ import annotations

import re
import string
import time
from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mindstream.text.words import windows

if TYPE_CHECKING:
    import re2
    import regex


MAX_DEPTH = 100
"""Maximum nesting depth of groups."""


class Form(Enum):
    """The engine and the texts that a pattern is translated for."""

    CHECK = "RE2, with look-arounds as plain groups, so that their syntax is checked too"
    ASCII = "RE2, for texts in ASCII that do not end with a line break"
    ANY = "RE2, for any text: a character beyond ASCII may be a letter, a digit, a space or neither"
    EXACT = "regex"


BEYOND = r"\x{80}-\x{10FFFF}"
KINDS = {
    "w": "0-9A-Za-z_",
    "W": r"\x00-/:-@\[-\^`{-\x7f",
    "d": "0-9",
    "D": r"\x00-/:-\x7f",
    "s": r"\x09-\x0d\x1c-\x20",
    "S": r"\x00-\x08\x0e-\x1b!-\x7f",
}
r"""The ASCII characters that a class matches, by the letter of the class: \w, \d, \s, and their complements \W, \D,
\S."""
PLACES = {"A": r"\A", "b": r"\b", "B": r"\B"}
CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
ESCAPE = r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|0[0-7]{0,2}|.)"
TOKEN = re.compile(
    rf"(?P<escape>{ESCAPE})|(?P<class>\[\^?\]?(?:[^\]\\]|\\.)*\])|(?P<comment>\(\?#[^)]*\))|(?P<look>\(\?<?[=!])"
    r"|(?P<flags>\(\?[a-zA-Z-]+[:)])|(?P<open>\((?:\?:|\?P<\w+>|(?!\?)))|(?P<odd>(?:\(\?|\[).*)"
    r"|(?P<repeat>(?:[*+?]|\{(?:\d+(?:,\d*)?|,\d*)\})\+?)|.",
    re.DOTALL,
)
IN_CLASS = re.compile(rf"(?P<escape>{ESCAPE})|.", re.DOTALL)
LARGE = "nests repeats, or has large counts: write it with fewer of them, or in several patterns"
REFUSED = {
    "(?P=": "a reference to a group (?P=name): write out what may stand there",
    "(?(": "a condition on a group: write two patterns",
    "(?>": "an atomic group (?>…): a plain group (?:…) costs no more here",
}


def translate(source: str, form: Form) -> tuple[str, bool]:
    """Translate a pattern for an engine; also return whether the result matches exactly the same texts as the
    pattern.

    Raises:
        ValueError: the pattern uses syntax that is not supported, or its groups are nested too deeply.
    """
    out: list[str] = []
    opened: list[int | None] = []  # for each open group: where it begins if it is a look-around to leave out, else None
    exact = True
    for token in TOKEN.finditer(source):
        kind, text = token.lastgroup, token[0]
        if kind == "escape":
            written, same = _escape(text, form)
        elif kind == "class":
            written, same = _class(text, form)
        elif kind == "repeat":
            written, same = _repeat(text), True
        elif kind in ("look", "open"):
            if len(opened) >= MAX_DEPTH:
                raise ValueError(f"not a regular expression that can be read: more than {MAX_DEPTH} groups deep")
            falls = kind == "look" and form in (Form.ASCII, Form.ANY)
            opened.append(len(out) if falls else None)
            written, same = "(?:" if kind == "look" and form is not Form.EXACT else text, not falls
        elif text == ")" and opened:
            written, same = ")", True
            if (begin := opened.pop()) is not None:
                del out[begin:]
                written = "(?:)"
        elif text == "$":
            written, same = ("(?:)", False) if form is Form.ANY else (text, True)
        elif kind in ("flags", "odd"):
            written, same = _flags(text, token.start()), True
        else:
            written, same = "" if kind == "comment" else _literal(text) if text in "{}]" else text, True
        out.append(written)
        exact = exact and same
    return "".join(out), exact


def _escape(text: str, form: Form) -> tuple[str, bool]:
    letter = text[1:2]
    if letter in KINDS and form is not Form.EXACT:
        return (f"[{KINDS[letter]}{BEYOND}]", False) if form is Form.ANY else (f"[{KINDS[letter]}]", True)
    if letter in "bB" and form is Form.ANY:
        return "(?:)", False
    if letter == "Z":
        return (text if form is Form.EXACT else r"\z"), True
    return (text, True) if letter in KINDS or letter in PLACES else (_character(text), True)


def _class(text: str, form: Form) -> tuple[str, bool]:
    """Return the translation of a character class `[…]` for an engine, and whether it matches exactly the same
    characters as the class does in Python. If not, it matches more characters, never fewer.
    """
    begin = "[^" if text.startswith("[^") else "["
    out, exact = [begin], True
    for item in IN_CLASS.finditer(text, len(begin), len(text) - 1):
        if item["escape"] and item[0][1] in KINDS:
            loose = form is Form.ANY
            exact = exact and not loose
            kind = item[0] if form is Form.EXACT else KINDS[item[0][1]]
            out.append(kind + BEYOND if loose and begin == "[" else kind)
        else:
            out.append(_character(item[0]) if item["escape"] else item[0] if item[0] == "-" else _literal(item[0]))
    return "".join([*out, "]"]), exact


def _character(escape: str) -> str:
    """Return the character that an escape stands for."""
    letter = escape[1:2]
    if letter in CONTROLS:
        return CONTROLS[letter]
    if letter in "xuU" and len(escape) > 2:
        return _literal(chr(int(escape[2:], 16)))
    if letter == "0":
        return chr(int(escape[1:], 8))
    if letter.isdigit():
        raise ValueError(f"contains a reference to a group ({escape}): write out what may stand there")
    if not letter or (letter.isascii() and letter.isalpha()):
        raise ValueError(f"contains {escape}, an escape that is not supported")
    return _literal(letter)


def _literal(character: str) -> str:
    return f"\\{character}" if character in string.punctuation and character != "_" else character


def _repeat(text: str) -> str:
    if len(text) > 1 and text.endswith("+"):
        raise ValueError(f"contains a possessive repeat ({text}): write a plain one, which costs no more here")
    return text.replace("{,", "{0,")


def _flags(text: str, at: int) -> str:
    for begin, told in REFUSED.items():
        if text.startswith(begin):
            raise ValueError(f"contains {told}")
    if text.startswith("["):
        raise ValueError("not a regular expression: a [ is not closed")
    if text.endswith(":"):
        raise ValueError("contains a group with flags of its own (?s:…): write (?s) at the beginning, or [\\s\\S]")
    if at or not text.endswith(")") or set(text[2:-1]) - set("is"):
        raise ValueError(f"contains {text[:9]}, which is not supported; only (?i) and (?s), at the beginning, are")
    return text


Name = TypeVar("Name", bound=Hashable)
MAX_SECONDS = 0.05
"""Maximum process time, in seconds, of the searches by `regex` in one text."""
WINDOW = 2_400
"""Number of characters that `regex` searches at once. It is above words.MAX_READ, the maximum that rules read of an
utterance."""
MAX_REMOVED = 100
"""Maximum number of matches that `without` replaces in a text."""
MAX_SIZE = 20_000
"""Maximum size of RE2's program for a pattern, which is its cost per character. The largest shipped pattern has a
fifteenth of this size.
"""
MEMORY = 16 << 20
"""Maximum memory of a set of patterns, in bytes."""


class SearchBudget:
    """The remaining time for searches by `regex`."""

    def __init__(self) -> None:
        self._left = MAX_SECONDS

    def search(self, exact: regex.Pattern[str], text: str) -> bool | None:
        """Return whether a pattern matches in a text; None: the time that was left did not suffice. The search's CPU
        time is subtracted from that time."""
        if self._left <= 0:
            return None
        began = time.process_time()
        try:
            return exact.search(text, timeout=self._left) is not None
        except TimeoutError:
            return None
        finally:
            self._left -= time.process_time() - began


class Pattern:
    """A regular expression, compiled at its first search. To compile one that may be invalid or too large, call
    `pattern`, which checks it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._forms: dict[Form, tuple[str, bool]] = {}

    def form(self, form: Form) -> tuple[str, bool]:
        """Return the translation for an engine, and whether it matches exactly the same texts as the pattern."""
        if form not in self._forms:
            self._forms[form] = translate(self.source, form)
        return self._forms[form]

    @cached_property
    def size(self) -> int:
        """The size of RE2's program for the pattern, which is its maximum cost per character."""
        size: int = self._relaxed(Form.CHECK).programsize
        return size

    @cached_property
    def is_always_searched(self) -> bool:
        """Whether RE2 can never rule out a match, because the pattern without its look-arounds matches the empty
        text."""
        return not self.form(Form.ASCII)[1] and self._relaxed(Form.ASCII).search("") is not None

    def matches(self, text: str, *, in_doubt: bool = False) -> bool:
        """Return whether the pattern matches anywhere in a text; return `in_doubt` if the search takes too long."""
        return self.hits(text) and self.stands(text, _form(text), SearchBudget(), in_doubt)

    def hits(self, text: str) -> bool:
        """Return whether the relaxed form of the pattern matches in a text, so that the pattern itself may match."""
        return self._relaxed(_form(text)).search(_encode(text)) is not None

    def without(self, text: str) -> str:
        """Return a text with a space in place of each match, at most MAX_REMOVED of them; unchanged if the search takes
        too long."""
        form = _form(text)
        relaxed = self._relaxed(form)
        if not relaxed.search(_encode(text)):
            return text
        if self.form(form)[1]:
            taken: str = relaxed.sub(" ", text, MAX_REMOVED)
            return taken
        try:
            spaced: str = self._exact.sub(" ", text, MAX_REMOVED, timeout=MAX_SECONDS)
        except TimeoutError:
            return text
        return spaced

    def stands(self, text: str, form: Form, budget: SearchBudget, in_doubt: bool) -> bool:
        """Return whether the pattern itself matches in a text in which the relaxed form of the pattern matches.

        Args:
            in_doubt: the result if the search takes too long.
        """
        if self.form(form)[1]:
            return True
        relaxed = self._relaxed(form)
        for window in windows(text, WINDOW):
            if len(window) < len(text) and not relaxed.search(_encode(window)):
                continue
            found = budget.search(self._exact, window)
            if found is not False:
                return in_doubt if found is None else True
        return False

    def _relaxed(self, form: Form) -> re2._Regexp:
        return _compile(self.form(form)[0])

    @cached_property
    def _exact(self) -> regex.Pattern[str]:
        import regex  # imported late: only patterns that RE2 cannot match exactly need it

        return regex.compile(self.form(Form.EXACT)[0], regex.IGNORECASE | regex.VERSION0)


class Patterns(Generic[Name]):
    """Searches for many patterns at once, with several under each name.

    `in_doubt`: whether a pattern counts as found if the time limit ends its search.
    """

    def __init__(self, named: Mapping[Name, Iterable[Pattern]], *, in_doubt: bool = False) -> None:
        self._each = [(name, one) for name, patterns in named.items() for one in patterns]
        self._in_doubt = in_doubt
        self._sets: dict[Form, re2.Set] = {}

    def matching(self, text: str) -> frozenset[Name]:
        """Return the names with at least one pattern that matches in a text."""
        form, budget = _form(text), SearchBudget()
        if form not in self._sets:
            self._sets[form] = self._set(form)
        hits = self._sets[form].Match(_encode(text)) or []
        if len(self._each) not in hits:  # the empty pattern always matches; if it is missing, RE2 ran out of memory
            hits = [at for at, (_, one) in enumerate(self._each) if one.hits(text)]
        found: set[Name] = set()
        for name, one in (self._each[at] for at in sorted(hits) if at < len(self._each)):
            if name not in found and one.stands(text, form, budget, self._in_doubt):
                found.add(name)
        return frozenset(found)

    def _set(self, form: Form) -> re2.Set:
        import re2

        made = re2.Set.SearchSet(_options(MEMORY))
        for _, one in self._each:
            made.Add(one.form(form)[0])
        made.Add("")
        made.Compile()
        return made


@lru_cache(4_000)
def pattern(source: str) -> Pattern:
    """Compile and check a regular expression.

    Raises:
        ValueError: the expression is invalid, uses unsupported syntax, or is too large; the message says what to write
            instead.
    """
    read = Pattern(source)
    if read.size > MAX_SIZE:
        raise ValueError(f"would take {read.size:,} steps per character (at most {MAX_SIZE:,} are allowed): it {LARGE}")
    return read


@lru_cache(1)
def _options(memory: int) -> Any:
    import re2  # imported late: it takes 11 ms, and loading a pack does not need it

    options = re2.Options()
    options.case_sensitive, options.log_errors, options.max_mem = False, False, memory
    return options


@lru_cache(4_000)
def _compile(text: str) -> re2._Regexp:
    import re2

    try:
        return re2.compile(text, _options(8 << 20))
    except UnicodeEncodeError:
        raise ValueError("not a regular expression: it contains half a character (a surrogate)") from None
    except re2.error as error:
        told = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        if "repetition size" in told or "too large" in told:
            told += f"; it {LARGE}"
        raise ValueError(f"not a regular expression that can be read: {told}") from None


def _form(text: str) -> Form:
    return Form.ASCII if text.isascii() and not text.endswith("\n") else Form.ANY


def _encode(text: str) -> bytes:
    if not text.isascii():
        text = text.replace("İ", "i").replace("ı", "i")  # Python treats both as forms of i; RE2 does not
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
