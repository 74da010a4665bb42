r"""Regular expressions that no text can make slow: RE2 searches in linear time; look-arounds are checked in a second
step.

Syntax and matches are those of Python's `re` with IGNORECASE. RE2 has no look-arounds, and its `\w`, `\b` and similar
classes are ASCII only. Therefore RE2 searches for a *relaxed* pattern without these parts, which matches at least where
the original does. Only if it matches, `regex` searches for the original. Some texts make `regex` slow, so this search
runs on windows of the text and has a time limit.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mindstream.text.relax import LARGE, Form, translate
from mindstream.text.words import windows

if TYPE_CHECKING:
    import re2
    import regex

Name = TypeVar("Name", bound=Hashable)
MAX_SECONDS = 0.05
"""Maximum process time, in seconds, of the searches by `regex` in one text."""
WINDOW = 2_400
"""Number of characters that `regex` searches at once. It is above words.MAX_READ, the maximum that rules read of an
utterance."""
MAX_REMOVED = 100
"""Maximum number of matches that `without` removes."""
MAX_SIZE = 20_000
"""Maximum size of RE2's program for a pattern, which is its cost per character. The largest shipped pattern has a third
of this size."""
MEMORY = 16 << 20
"""Maximum memory of a set of patterns, in bytes."""


class SearchBudget:
    """The remaining time for searches by `regex`."""

    def __init__(self) -> None:
        self._left = MAX_SECONDS

    def search(self, exact: regex.Pattern[str], text: str) -> bool | None:
        """Return whether a pattern matches in a text; None: there was not enough time."""
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
        """Return whether the pattern itself matches in a text in which its relaxed form matches; `in_doubt` if the
        search takes too long."""
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
        import regex  # imported late: only patterns with look-arounds need it

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
        ValueError: it is invalid or uses unsupported syntax; the message says what to write instead.
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
