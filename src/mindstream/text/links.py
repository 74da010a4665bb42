"""Find links in text, and remove links that no trusted text contains: loading such an address could leak data.

A chat page may load an image or follow a link in an answer. Therefore every form that Markdown or HTML turns into a
request counts as a link: `https:host`, `//host`, a bare host with a path, `javascript:` in a Markdown destination, the
attributes of an HTML tag, and all of these written with entities, full-width or invisible characters.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Set
from contextlib import aclosing
from typing import TypeAlias

MAX_HELD_BACK = 2_000
"""Maximum characters of an unfinished link or tag that are held back."""
LEFT_OUT = "…"
ENDS = ".,;:!?)]}*_'~/"
"""Punctuation and the slash. Up to four of these characters are removed from the end of a link before links are
compared."""
_TRAILING = re.compile(rf"[{re.escape(ENDS)}]{{1,4}}\Z")
_REST = r"[!#-;=?-~\u00c0-\u1fff\u2c00-\u2dff]"
"""A character of a link.

A link ends at spaces, double and typographic quotation marks, `<`, `>`, and letters of Chinese, Japanese and Korean,
among others. Other brackets, the apostrophe and the backtick can be part of a link.
"""
_BEFORE = r"(?<![\w])"
_DOMAIN = r"(?<![\w@.-])(?:[a-z0-9\u00c0-\u1fff-]{1,63}\.){1,4}"
_FLAGS = re.IGNORECASE
LINK = re.compile(
    rf"(?:https?|ftps?|wss?|mailto|xmpp)\s?:(?=[^\s]){_REST}*"
    rf"|{_BEFORE}[a-z][a-z0-9+.\-]{{1,15}}+://{_REST}*"
    rf"|(?<=\]\()<?\s*(?:[a-z][a-z0-9+.\-]{{1,15}}:|[/\\]{{2}}){_REST}*"
    rf"|(?<![\w:/\\])[/\\]{{2}}(?=[^\s/\\]{{1,63}}\.\w){_REST}*"
    rf"|{_BEFORE}www\.{_REST}*"
    rf"|{_DOMAIN}(?:(?:com|org|net|edu|gov|info|io|app|uk|cn)(?![\w-])(?:[/?#\\:]{_REST}*)?"
    rf"|[a-z\u00c0-\u1fff]{{2,24}}[/?#\\]{{1,3}}\w{_REST}*)",
    _FLAGS,
)
_NO_LINK = re.compile(r"[\w+-]+\.(?:js|ts|jsx|tsx|py|md|txt|html|css|json|csv|pdf|docx)/[a-z]+[.,;:!?)]*", _FLAGS)
"""Two names of programs or files with a slash between them, such as Node.js/express: this is no link."""
_MAYBE = re.compile(r"://|\.[a-z0-9\u00c0-\u1fff]|www\.|\]\(|[a-z]\s?:\S|[/\\]{2}", _FLAGS)
"""Matches a part that every link has. Texts without such a part, that is, most texts, are not searched further."""
_MARK = re.compile(r"\]\(|[:/\\.&<@\u00ad\u200b-\u200f\u2060-\u2064\ufeff\uff0e\uff0f\uff1a]")
"""A character that may be part of a link, or `](`. A word with one of these is passed on only when it is complete."""
_LAST_WORD = re.compile(r"\S*\Z")
_BEGUN = re.compile(r"(?:h|ht|htt|https?|w|ww|www\.?)\Z", _FLAGS)
"""Letters at the end of a text that may be the beginning of a link."""
_TAG = re.compile(r"<[a-z][a-z0-9-]*(?:[\s/][^>]*)?", _FLAGS)
"""Matches the beginning of an HTML tag, up to its final `>`, which is not included and may be missing."""
_VALUE = re.compile(r"""=\s*("[^"]*"?|'[^']*'?|[^\s"'>]+)""")
"""Matches `=` and the value of an HTML attribute."""
_DEFINITION = re.compile(r"\s*\[[^\]]*\]:\s*<?")
"""The beginning of a Markdown reference definition, whose address an image may load."""

Links: TypeAlias = Callable[[], Set[str]]


def has_links(text: str) -> bool:
    """Return whether a text contains a link."""
    return any(_find(text))


def links(texts: Iterable[str]) -> frozenset[str]:
    """Return the links of these texts in the form in which links are compared (see `bare`)."""
    return frozenset(bare(found[0]) for text in texts for found in _find(text))


def bare(link: str) -> str:
    """Return a link in the form in which links are compared.

    Removed are a scheme with `://`, `www.`, and up to four characters of `ENDS` at the end; the host is in lower case.
    """
    link = _TRAILING.sub("", link.lstrip("< "))
    rest = re.sub(r"^(?:[a-z][a-z0-9+.\-]*://)?(?:www\.)?", "", link, flags=re.IGNORECASE)
    host, slash, path = rest.partition("/")
    return f"{host.lower()}{slash}{path}"


def without_links(text: str, given: Set[str]) -> tuple[str, list[str]]:
    """Return a text without links that are not `given`, and the `bare` forms of the links that were left out.

    "…" (LEFT_OUT) replaces each of these links. `given`: a set of `bare` links.
    """
    gone: list[str] = []
    kept, at = "", 0
    for found in _find(text):
        if (link := bare(found[0])) not in given:
            gone.append(link)
            kept, at = kept + text[at : found.start()] + LEFT_OUT, found.start() + len(_without_end(found[0]))
    return kept + text[at:], gone


def _find(text: str) -> Iterator[re.Match[str]]:
    if _MAYBE.search(text):
        yield from (found for found in LINK.finditer(text) if not _NO_LINK.fullmatch(found[0]))


def _without_end(link: str) -> str:
    return link.rstrip(ENDS) or link


async def pieces_without_links(
    pieces: AsyncGenerator[str], given: Links, loaded: Links | None = None
) -> AsyncGenerator[str]:
    """Yield the pieces of an answer without links that are not allowed.

    A word that may become a link, or an HTML tag, is held back until it is complete. Everything else is yielded at
    once.

    Args:
        given: function that returns the `bare` links that the answer may contain; called only if there is a link.
        loaded: function that returns the `bare` links that a page may load by itself (images, reference definitions,
            HTML tags); None: `given`.
    """
    answer = LinkFilter(given, loaded or given)
    async with aclosing(pieces):
        async for piece in pieces:
            if passed := answer.feed(piece):
                yield passed
    if passed := answer.feed("", last=True):
        yield passed


class LinkFilter:
    """Removes links from an answer that arrives in pieces. Keeps the unfinished word and the paragraph before it."""

    def __init__(self, given: Links, loaded: Links) -> None:
        self._given, self._loaded = given, loaded
        self._before = ""
        """The paragraph up to the current word."""
        self._word = ""
        """The part of the current word (or HTML tag, with its spaces) that has arrived."""
        self._sent = 0
        """Number of characters of the current word that have been passed on."""
        self._is_tag = self._is_dropping = False

    def feed(self, piece: str, *, last: bool = False) -> str:
        """Read a piece of the answer. Return the text that can be passed on now, without links that are not allowed.

        Args:
            last: whether this is the last piece. If so, nothing is held back.
        """
        passed = ""
        if self._is_plain(piece):
            text = self._word + piece
            begun = len(text) - len(_LAST_WORD.findall(text)[0])
            passed, self._word = text[self._sent : begun], text[begun:]
            if begun:
                self._before, self._sent = (self._before + text[: begun - 1])[-MAX_HELD_BACK:] + text[begun - 1], 0
            piece = ""
        for sign in piece:
            if sign.isspace() and not self._is_tag:
                self._is_tag = _TAG.fullmatch(self._word) is not None
            if sign.isspace() and not self._is_tag:
                passed += self._end() + sign
                self._before = "" if sign == "\n" == self._before[-1:] else self._before[-MAX_HELD_BACK:] + sign
                self._is_dropping = False
                continue
            if sign == "<" and self._word and not self._is_tag:
                passed += self._end()
            self._word += sign
            if (sign == ">" and self._is_tag) or len(self._word) >= MAX_HELD_BACK:
                passed += self._end()
        if last:
            return passed + self._end()
        if self._is_dropping or self._is_tag:
            return passed
        if not _MARK.search(self._word.rstrip(".")) and not _BEGUN.search(self._word):
            passed += self._word[self._sent :]
            self._sent = len(self._word)
        return passed

    def _is_plain(self, piece: str) -> bool:
        """Return whether a piece, with the current word before it, can contain no link and no tag."""
        if self._is_tag or self._is_dropping or len(self._word) + len(piece) >= MAX_HELD_BACK:
            return False
        return not _MARK.search(piece) and "\n" not in piece and not _MARK.search(self._word)

    def _end(self) -> str:
        """End the current word; return the part of the word that may be passed on.

        The result is "" while the rest of a link that was left out is being dropped.
        """
        word, sent, is_tag = self._word, self._sent, self._is_tag
        self._word, self._sent, self._is_tag = "", 0, False
        if self._is_dropping:
            return ""
        passed = self._judge_tag(word) if is_tag else self._judge(word, sent)
        self._is_dropping = len(word) >= MAX_HELD_BACK and passed.endswith(LEFT_OUT)
        self._before += word
        return passed

    def _judge_tag(self, tag: str) -> str:
        values = (re.sub(r"\s", "", _plain(value).strip("\"'")) for value in _VALUE.findall(tag))
        texts = [_plain(tag), *("](" + value for value in values)]  # checked like a Markdown destination
        return LEFT_OUT if links(texts) - self._loaded() else tag

    def _judge(self, word: str, sent: int) -> str:
        """Return a word from the position `sent` on; "…" (LEFT_OUT) replaces links that are not allowed."""
        if not _MARK.search(word):
            return word[sent:]
        lead = "](" if self._before.rstrip(" <").endswith("](") else ""
        plain, kept, at = _plain(word), "", sent
        for found in _find(lead + plain):
            start = max(0, found.start() - len(lead))
            before = self._before + plain[:start]
            is_loaded = "![" in before or _DEFINITION.fullmatch(before.rpartition("\n")[2]) is not None
            if bare(found[0]) in (self._loaded if is_loaded else self._given)():
                continue
            if plain != word:
                return LEFT_OUT
            kept += word[at:start] + LEFT_OUT
            at = max(sent, start + len(_without_end(word[start : found.end() - len(lead)])))
        return kept + word[at:]


def _plain(word: str) -> str:
    """Return a word as a browser reads it: entities are resolved, full-width letters are narrow, and invisible
    characters are removed."""
    plain = html.unescape(unicodedata.normalize("NFKC", html.unescape(word)))
    return "".join(sign for sign in plain if unicodedata.category(sign) != "Cf")
