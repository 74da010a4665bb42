"""Decide whether a text mentions a subject that is to be forgotten. A text about the subject that does not meet these
strict rules counts only as similar.

A text mentions a subject if it contains all words of the subject, in any order. Letter case, accents, Unicode form
(NFC or NFD, full width), possessive and plural make no difference; other word forms do. More exactly:
- English function words ("the", "of", "my") are ignored if the subject has other words, except negations. A function
word with a capital is a name (Will, IT, May): the text must have it with the same capitals. At the beginning of a
sentence every word has a capital, so there only function words that are also names count.
- A word with symbols (C++, C#, .NET, A/B, $5), an emoji or a symbol must occur exactly: C is not C++, and a thumb emoji
is not one of another skin tone.
- Characters of a script without spaces must be adjacent, as in the subject; only "的" and "の" may be missing. A
Chinese name whose last character is doubled is another name: 王明 is not 王明明, but occurs in 王明明天来 ("comes
tomorrow"). Other longer names (张三, 张三丰) cannot be distinguished without a dictionary: check the preview first.

`may_mention` and `may_quote` find candidates by the word index; the caller then checks each text. They miss no matching
record, because they only look up terms that every matching text must contain. If a subject or text has no such term (a
single emoji, a name that is also a stop word), they return None: the caller must read all texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from mindstream.arrays import Ints
from mindstream.errors import InputError
from mindstream.memory.store.redaction import ErasedWords
from mindstream.text.words import ANY_WORD, BASE, FUNCTION_CHARACTERS, MARKS, STOP, UNSPACED, terms

if TYPE_CHECKING:
    from mindstream.memory.store.columns import Columns


FUNCTION_WORDS = STOP | frozenset(["am", "go", "may", "might", "must", "shall", "us"])
NAMES = frozenset(["don", "go", "may", "will"])
"""Function words that are also names: with a capital they count as names even at the beginning of a sentence."""
DETERMINERS = STOP & frozenset(
    "a an the my your his her its our their this that these those all some any i".split()  # noqa: SIM905
)
"""Function words that are ignored, even with a capital letter, if the subject has other words."""
NEGATIONS = frozenset(["no", "not", "never", "without"])
PLURAL_ONLY = frozenset(["news", "lens", "gas", "bus", "james"])
"""Words that end in -s and are not plurals."""

LETTER = rf"(?:[^\W_{UNSPACED}]|[{MARKS}])"
TOKEN = re.compile(
    rf"(?P<word>\d+(?:[.,:]\d+)+(?!{LETTER})|(?:(?<![\w.])\.(?=[^\W\d_]))?{LETTER}+(?:'{LETTER}+)*(?:\+\+|\+(?!\w)|#)*)"
    rf"|(?P<run>[{UNSPACED}]+)"
)
SYMBOLS = "@#%&*/\\_"
"""Punctuation that is treated as a part of the word that it touches. All symbols (Unicode's categories S*) are treated
in the same way.
"""
AROUND = "\"'“”‘’„«»()[]{},;:!?。！？，、；：…"
SMILEYS = frozenset([":)", ":(", ";)", ":-)", ":-(", ";-)"])
JOINED = "&/+#@.-'"
"""Characters that join a single letter and another word into one word: R&D, A/B, Objective-C."""
VARIATION = re.compile("[\ufe0e\ufe0f]")
MODIFIERS = "\u200d\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范"
    "金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤欧張劉陳楊黃趙吳孫馬鄭謝許韓馮鄧"
)
AFTER_MING = "天年日早晚白确显后確顯後"
"""Characters that form a word with 明 before them (明天, tomorrow). In such a word, 明 is not part of a name."""
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff"

MIN_QUOTED_WORDS, MIN_QUOTED_SHARE = 3, 0.75
"""MIN_QUOTED_WORDS: minimum number of different words that a text must have for its repetition to be detected.
MIN_QUOTED_SHARE: minimum share of these words in a line for the line to repeat the text.
"""


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text, without its possessive ending, and the word's position in the text."""

    raw: str
    start: int
    end: int
    text: str

    @property
    def folded(self) -> str:
        """The word without case and accents."""
        return _folded(self.raw)

    @property
    def begins_sentence(self) -> bool:
        """Whether the word is at the beginning of a sentence or line."""
        before = self.text[: self.start].rstrip(" \t\"'“‘([«*-•")
        return not before or before[-1] in ".!?…:\n。！？："

    @property
    def is_joined(self) -> bool:
        """Whether the word is part of a joined word such as R&D."""
        before, after = self.text[max(0, self.start - 2) : self.start], self.text[self.end : self.end + 2]
        return (len(before) == 2 and before[1] in JOINED and before[0].isalnum()) or (
            len(after) == 2 and after[0] in JOINED and after[1].isalnum()
        )


Check = Callable[[str, list[Token]], bool]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a subject, such as a word.

    Attributes:
        quick: case-folded strings for a fast first test. A text that contains this part contains one of these strings.
        check: decides whether a text contains this part.
        is_word: the strings in `quick` are words of the text, or parts of words in a script without spaces.
    """

    quick: tuple[str, ...]
    check: Check
    is_word: bool = False


def mentions(subject: str) -> Callable[[str], bool]:
    """Return a function that decides whether a text mentions a subject.

    Raises:
        InputError: the subject has no word, name or symbol to look for.
    """
    pieces = _pieces(subject)
    if not pieces:
        raise InputError(
            f"{subject!r} has no words to look for: name what is to be forgotten, such as: the red bicycle;"
            " a name that is also a common word needs its capitals, such as: Will, IT"
        )

    def is_mentioned(text: str) -> bool:
        plain = _plain(text)
        folded = _folded(plain)
        if not all(any(each in folded for each in piece.quick) for piece in pieces):
            return False
        tokens = _tokens(plain)
        return all(piece.check(plain, tokens) for piece in pieces)

    return is_mentioned


def necessary_words(subject: str) -> list[tuple[str, ...]]:
    """Return groups of case-folded words; every text that mentions the subject contains one word of each group."""
    return [piece.quick for piece in _pieces(subject) if piece.is_word]


def quotes(texts: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that decides whether a line repeats one of these texts.

    A line repeats a text if it contains at least MIN_QUOTED_SHARE of the text's words. Texts with fewer than
    MIN_QUOTED_WORDS different words are ignored.
    """
    asked = [words for text in texts if len(words := set(terms(text))) >= MIN_QUOTED_WORDS]
    holders: dict[str, list[int]] = {}
    for at, words in enumerate(asked):
        for word in words:
            holders.setdefault(word, []).append(at)

    def quotes_one(line: str) -> bool:
        shared = Counter(at for word in set(terms(line)) for at in holders.get(word, ()))
        return any(count >= MIN_QUOTED_SHARE * len(asked[at]) for at, count in shared.items())

    return quotes_one


def _pieces(subject: str) -> list[Piece]:
    plain = _plain(subject).strip()
    if len(plain) > 1 and " " in plain and plain.isupper():
        plain = plain.lower()  # the subject is all in capitals, so capitals do not mark names
    chunks = [chunk for each in plain.split() if (chunk := _stripped(each))]
    literals = dict.fromkeys(chunk for chunk in chunks if _has_symbols(chunk))
    rest = " ".join(chunk for chunk in chunks if chunk not in literals)
    words = _tokens(rest)
    split = (each for found in TOKEN.finditer(rest) for each in re.split("[的の]", found["run"] or "") if each)
    runs = list(dict.fromkeys(split))
    telling_runs = [each for each in runs if not FUNCTION_CHARACTERS.issuperset(each)] or (
        runs if not words and not literals and any(len(each) > 1 for each in runs) else []
    )
    content = dict.fromkeys(each for each in words if each.folded not in FUNCTION_WORDS or _is_plain_extra(each))
    pieces = [*map(_literal, literals), *map(_run, telling_runs), *map(_word, content)]
    if not pieces:
        return _name_piece(words)
    for at, each in enumerate(words):
        if each not in content and each.raw != each.raw.lower() and each.folded not in DETERMINERS:
            pieces.append(
                _name_beside(each, words[at - 1] if at else None, words[at + 1] if at + 1 < len(words) else None)
            )
    if any(map(_is_negation, words)):
        pieces.append(Piece(("",), lambda _, tokens: any(map(_is_negation, tokens))))
    return pieces


def _is_plain_extra(token: Token) -> bool:
    """Return whether a token is in lower case and not a stop word of the word index; "may" is such a token."""
    return token.folded not in STOP and token.raw == token.raw.lower()


def _is_negation(token: Token) -> bool:
    return token.folded in NEGATIONS or token.folded.endswith("n't")


def _word(wanted: Token) -> Piece:
    """Match a word of the subject, its plural or its singular. If this word and a word of the text are both
    capitalised, like names, only the same form matches."""
    folded, is_name = wanted.folded, wanted.raw[:1].isupper()
    forms = _forms(folded)

    def check(_: str, tokens: list[Token]) -> bool:
        return any(
            (each.folded == folded or (each.folded in forms and not (is_name and each.raw[:1].isupper())))
            and not (len(folded) == 1 and each.is_joined and not wanted.is_joined)
            for each in tokens
        )

    return Piece((folded, *forms), check, is_word=not {*wanted.raw} & {*".,:"})


def _name_beside(wanted: Token, before: Token | None, after: Token | None) -> Piece:
    """Return the piece for a capitalised function word, such as "Will", in a subject that has other words.

    A text matches if it has the word with the same capitals. It also matches if the word has the same neighbour as in
    the subject: the word directly before it (`before`) or directly after it (`after`).
    """
    folded = wanted.folded

    def check(_: str, tokens: list[Token]) -> bool:
        for at, each in enumerate(tokens):
            if each.folded == folded:
                follows = before is not None and at > 0 and tokens[at - 1].folded == before.folded
                leads = after is not None and at + 1 < len(tokens) and tokens[at + 1].folded == after.folded
                if each.raw == wanted.raw or follows or leads:
                    return True
        return False

    return Piece((folded,), check)


def _name_piece(words: list[Token]) -> list[Piece]:
    """Match a subject that consists of function words only, such as IT, Will or The Who. If it has no capital letter
    (apart from "I"), nothing matches.
    """
    if not any(each.raw != each.raw.lower() and each.raw != "I" for each in words):
        return []

    def is_same(wanted: Token, each: Token, first: bool) -> bool:
        return each.raw == wanted.raw or (first and len(words) > 1 and each.raw.lower() == wanted.raw.lower())

    def check(_: str, tokens: list[Token]) -> bool:
        for at in range(len(tokens) - len(words) + 1):
            some = tokens[at : at + len(words)]
            if all(
                is_same(wanted, each, n == 0) for n, (wanted, each) in enumerate(zip(words, some, strict=True))
            ) and (len(words) > 1 or words[0].folded in NAMES or words[0].raw.isupper() or not some[0].begins_sentence):
                return True
        return False

    return [Piece((words[0].folded,), check)]


def _run(wanted: str) -> Piece:
    """Return the piece for a word of a script without spaces. The piece matches the word within longer text.

    A name in katakana must be a whole word. A Chinese name of two or three characters must not be followed by a
    repetition of its last character. Exception: a name that ends with 明 may be followed by 明 if this second 明 begins
    another word (AFTER_MING).
    """
    folded = _folded(wanted)
    before = f"(?<![{KATAKANA}])" if re.match(f"[{KATAKANA}]", folded) else ""
    after = f"(?![{KATAKANA}])" if re.search(f"[{KATAKANA}]$", folded) else ""
    if len(folded) in (2, 3) and folded[0] in SURNAMES and "\u4e00" <= folded[-1] <= "\u9fff":
        after = f"(?!{folded[-1]}{f'(?![{AFTER_MING}])' * (folded[-1] == '明')})"
    pattern = re.compile(before + re.escape(folded) + after)
    return Piece((folded,), lambda text, _: bool(pattern.search(_folded(text))), is_word=len(folded) > 1)


def _literal(wanted: str) -> Piece:
    """Match an emoji, a symbol, or a word that contains symbols (such as C++). Only case and accents may differ."""
    folded = _folded(wanted)
    first, last = folded[0], folded[-1]

    def check(text: str, _: list[Token]) -> bool:
        text = _folded(text)
        at = text.find(folded)
        while at >= 0:
            before, after = text[max(0, at - 2) : at][::-1], text[at + len(folded) : at + len(folded) + 2]
            if not (_goes_on(first, before) or _goes_on(last, after) or _is_odd_flag(text, at, first)):
                return True
            at = text.find(folded, at + 1)
        return False

    return Piece((folded,), check, is_word=folded.isascii())


def _goes_on(edge: str, beyond: str) -> bool:
    """Return whether a word or symbol continues beyond its first or last character.

    Args:
        edge: the first or last character of the word or symbol.
        beyond: the characters before or after the word or symbol, the nearest first.
    """
    if not beyond:
        return False
    if edge.isalnum():
        return (
            beyond[0].isalnum()
            or beyond[0] in "+#"
            or (len(beyond) == 2 and beyond[0] in "&/@" and beyond[1].isalnum())
        )
    if edge == "." or edge in SYMBOLS:
        return (beyond[0].isalnum() and edge in "./&") or beyond[0] == edge
    return beyond[0] in MODIFIERS or (beyond[0] == edge and edge.isascii())


def _is_odd_flag(text: str, at: int, first: str) -> bool:
    """Return whether a flag emoji that was found here begins in the middle of another flag: a flag is two
    characters."""
    if not "\U0001f1e6" <= first <= "\U0001f1ff":
        return False
    before = len(text[:at]) - len(text[:at].rstrip("".join(map(chr, range(0x1F1E6, 0x1F200)))))
    return before % 2 == 1


def _stripped(chunk: str) -> str:
    """Return a word without surrounding punctuation, and without 's if the word contains symbols.

    Return "" if the text consists of punctuation only and is not a smiley.
    """
    core = chunk.strip(AROUND).rstrip(".")
    if core.endswith("'s") and _has_symbols(core[:-2]):
        core = core[:-2]
    if any(each.isalnum() or _is_symbol(each) for each in core):
        return core
    return chunk if chunk in SMILEYS else ""


def _is_symbol(character: str) -> bool:
    return character in SYMBOLS or unicodedata.category(character)[0] == "S"


def _has_symbols(chunk: str) -> bool:
    """Return whether a word contains symbols, so that it must be matched exactly."""
    inner = re.search(r"^\.[^\W\d_]|[^\W\d_]\.[^\W\d_]", chunk)
    return bool(inner) or any(map(_is_symbol, chunk)) or not any(map(str.isalnum, chunk))


def _tokens(text: str) -> list[Token]:
    return [
        Token(raw, found.start(), found.start() + len(raw), text)
        for found in TOKEN.finditer(text)
        if (raw := _without_possessive(found["word"] or ""))
    ]


def _without_possessive(word: str) -> str:
    return word[:-2] if len(word) > 2 and word.endswith(("'s", "'S")) else word


@lru_cache(1_000)
def _forms(word: str) -> frozenset[str]:
    """Return the plurals and singulars of a word, including irregular ones (mouse, mice)."""
    if not word.isascii() or not word.isalpha() or len(word) < 2 or word in PLURAL_ONLY:
        return frozenset()
    forms = {f"{word}s", f"{word}es"} if word[-1] in "sxzoh" else {f"{word}s"}
    if word.endswith("y") and word[-2] not in "aeiou":
        forms = {f"{word[:-1]}ies"}
    if word.endswith("ies") and len(word) > 4:
        forms |= {f"{word[:-3]}y", word[:-1]}
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        forms |= {word[:-1]} | ({word[:-2]} if word[-3:-1] in ("se", "xe", "ze", "oe", "he") else set())
    base = BASE.get(word, word)
    forms |= {base, *(each for each, of in BASE.items() if of == base)}
    return frozenset(forms - {word} - PLURAL_ONLY)


def _plain(text: str) -> str:
    """Return a text in a Unicode normal form that keeps letter case and accents, without variation selectors and with
    plain apostrophes."""
    return text if text.isascii() else VARIATION.sub("", unicodedata.normalize("NFKC", text)).replace("’", "'")


def _folded(text: str) -> str:
    """Return a text in lower case (case-folded), without accents."""
    if text.isascii():
        return text.lower()
    parted = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(each for each in parted if not "\u0300" <= each <= "\u036f"))


def may_mention(columns: Columns, subject: str) -> Ints | None:
    """Return the positions of the records that may mention a subject; None: any record may."""
    best: Ints | None = None
    for alternatives in necessary_words(subject):
        each = [certain_terms(form, at_edges=True) for form in alternatives]
        if all(each):
            rows = np.unique(np.concatenate([_holding_all(columns, some) for some in each]))
            best = rows if best is None or len(rows) < len(best) else best
    return best


def may_quote(columns: Columns, texts: Sequence[str]) -> Ints | None:
    """Return the positions of the records that may repeat one of these texts, a part of it, or most of its words.

    Return None if any record may.
    """
    found: list[Ints] = []
    for text in texts:
        words = sorted(set(terms(text)))
        if len(words) >= MIN_QUOTED_WORDS:
            documents = columns.lexical.matches_of(words).documents
            found.append(np.flatnonzero(np.bincount(documents) >= MIN_QUOTED_SHARE * len(words)))
    for piece in ErasedWords(texts).pieces():
        certain = certain_terms(piece)
        if not certain:
            return None
        found.append(_holding_all(columns, certain))
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def certain_terms(text: str, *, at_edges: bool = False) -> set[str]:
    """Return terms by which the index finds every text that contains `text`, in any letter case.

    Args:
        at_edges: whether only texts that contain `text` as whole words must be found. In such texts, no letters touch
            the beginning or end of `text`.
    """
    plain = unicodedata.normalize("NFKC", text.lower())
    certain = set[str]()
    for word in ANY_WORD.finditer(plain):
        touches = not at_edges and (word.start() == 0 or word.end() == len(plain))
        if word["run"] and len(word["run"]) > 1:
            certain.update(terms(word["run"]))
        elif not word["run"] and not touches and _is_plain(word[0]):
            certain.update(terms(word[0]))
    return certain


def _is_plain(word: str) -> bool:
    """Return whether a word is in the index, and in one spelling only.

    False for stop words, which are not in the index, and for words with ß or ss, which have two spellings.
    """
    return word not in STOP and word.casefold() == word and "ss" not in word


def _holding_all(columns: Columns, wanted: Iterable[str]) -> Ints:
    """Return the documents that contain all of these terms."""
    wanted = sorted(wanted)
    counts = np.bincount(columns.lexical.matches_of(wanted).documents)
    return np.flatnonzero(counts == len(wanted))
