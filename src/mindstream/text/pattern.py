"""Regular expressions that no text can make slow: RE2's, all of a language in one pass; look-arounds in a second step.

The syntax and what is found are those of Python's `re`, without regard to case. RE2 knows no look-around, and by
`\\w`, `\\b`, … it means ASCII. So for RE2 a pattern is *relaxed*: what it cannot say falls away, and it finds at least
what the pattern finds. Only where it does is the pattern itself searched for, by `regex`, which a text can make slow:
in windows of the text, and no longer than a text may take.
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
MOST_SECONDS = 0.05
"""So long, in seconds of this process, look-arounds are searched for in one text."""
WINDOW = 2_400
"""In so many characters at once: all that the rules read of an utterance (windows.MOST)."""
TAKEN_OUT = 100
"""So many matches at most are taken out of a text."""
MOST_SIZE = 20_000
"""A pattern of more steps for each character is refused; the largest that ships has a third."""
MEMORY = 16 << 20
"""Bytes for a set of patterns; what it does not need it does not take."""


class SearchBudget:
    """The time that is left for what a text can make slow."""

    def __init__(self) -> None:
        self._left = MOST_SECONDS

    def search(self, exact: regex.Pattern[str], text: str) -> bool | None:
        """Tell whether a pattern stands in a text; None: there was no time to find out."""
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
    """A regular expression, made ready when it is first searched for. One that is not known to be right: `pattern`."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._forms: dict[Form, tuple[str, bool]] = {}

    def form(self, form: Form) -> tuple[str, bool]:
        """Return how it is written for an engine, and whether that finds exactly what it finds."""
        if form not in self._forms:
            self._forms[form] = translate(self.source, form)
        return self._forms[form]

    @cached_property
    def size(self) -> int:
        """How large RE2's program for it is: what a character of a text costs at most."""
        size: int = self._relaxed(Form.CHECK).programsize
        return size

    @cached_property
    def is_always_searched(self) -> bool:
        """Tell whether RE2 cannot rule it out anywhere: beside its look-arounds it may be empty."""
        return not self.form(Form.ASCII)[1] and self._relaxed(Form.ASCII).search("") is not None

    def matches(self, text: str, *, in_doubt: bool = False) -> bool:
        """Tell whether it stands anywhere in a text."""
        return self.hits(text) and self.stands(text, _form(text), SearchBudget(), in_doubt)

    def hits(self, text: str) -> bool:
        """Tell whether its relaxed form stands in a text: it may be there."""
        return self._relaxed(_form(text)).search(_encode(text)) is not None

    def first(self, text: str) -> tuple[int, int] | None:
        """Return from where to where it stands first; of a pattern that is the same in all forms."""
        found = self._relaxed(Form.ANY).search(text)
        return found.span() if found else None

    def without(self, text: str) -> str:
        """Return a text with a space in the place of each match, of a hundred at most; unchanged if it takes long."""
        form = _form(text)
        relaxed = self._relaxed(form)
        if not relaxed.search(_encode(text)):
            return text
        if self.form(form)[1]:
            taken: str = relaxed.sub(" ", text, TAKEN_OUT)
            return taken
        try:
            spaced: str = self._exact.sub(" ", text, TAKEN_OUT, timeout=MOST_SECONDS)
        except TimeoutError:
            return text
        return spaced

    def stands(self, text: str, form: Form, budget: SearchBudget, in_doubt: bool) -> bool:
        """Tell whether it stands in a text in which its relaxed form does; `in_doubt` where that takes too long."""
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
        import regex  # only where a look-around is in question

        return regex.compile(self.form(Form.EXACT)[0], regex.IGNORECASE | regex.VERSION0)


class Patterns(Generic[Name]):
    """Several patterns under each name, searched for together.

    `in_doubt`: whether one counts as found that cannot be searched for in time.
    """

    def __init__(self, named: Mapping[Name, Iterable[Pattern]], *, in_doubt: bool = False) -> None:
        self._each = [(name, one) for name, patterns in named.items() for one in patterns]
        self._in_doubt = in_doubt
        self._sets: dict[Form, re2.Set] = {}

    def matching(self, text: str) -> frozenset[Name]:
        """Return the names of which a pattern stands in a text."""
        form, budget = _form(text), SearchBudget()
        if form not in self._sets:
            self._sets[form] = self._set(form)
        hits = self._sets[form].Match(_encode(text)) or []
        if len(self._each) not in hits:  # the empty pattern is missing: memory did not suffice; one alone needs none
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
    """Read a regular expression.

    Raises:
        ValueError: it is none, or it holds what is not matched here; the message says what to write instead.
    """
    read = Pattern(source)
    if read.size > MOST_SIZE:
        raise ValueError(f"would take {read.size:,} steps for each character ({MOST_SIZE:,} are the most): it {LARGE}")
    return read


@lru_cache(1)
def _options(memory: int) -> Any:
    import re2  # eleven milliseconds, which not everybody who reads a pack needs

    options = re2.Options()
    options.case_sensitive, options.log_errors, options.max_mem = False, False, memory
    return options


@lru_cache(4_000)
def _compile(text: str) -> re2._Regexp:
    import re2

    try:
        return re2.compile(text, _options(8 << 20))
    except UnicodeEncodeError:
        raise ValueError("not a regular expression: it holds half a character (a surrogate)") from None
    except re2.error as error:
        told = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        if "repetition size" in told or "too large" in told:
            told += f"; it {LARGE}"
        raise ValueError(f"not a regular expression that can be read: {told}") from None


def _form(text: str) -> Form:
    return Form.ASCII if text.isascii() and not text.endswith("\n") else Form.ANY


def _encode(text: str) -> bytes:
    if not text.isascii():
        text = text.replace("İ", "i").replace("ı", "i")  # to Python these are forms of an i, to RE2 they are not
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
