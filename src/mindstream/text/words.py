"""Split text into terms, the form of words that recall compares: lower case, stemmed, without stop words.

English words are replaced by their stem (by Snowball; irregular forms first by their base form). Words of other
alphabets are used as they are, without accents. Chinese, Japanese, Korean, Thai, Lao, Burmese and Khmer texts are split
into pairs of neighbouring characters; a character without a neighbour is a term itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias, TypeVar

import Stemmer

from mindstream.caches import remember

FORMS = """
arise arose arisen; beat beaten; become became; begin began begun; bend bent; bite bit bitten; bleed bled; blow blew
blown; break broke broken; breed bred; bring brought; build built; burn burnt; buy bought; catch caught; choose chose
chosen; come came; creep crept; deal dealt; dig dug; draw drew drawn; dream dreamt; drink drank drunk; drive drove
driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fly flew flown;
forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten; give
gave given; go went gone; grow grew grown; hang hung; hear heard; hide hid hidden; hold held; keep kept; kneel knelt;
know knew known; lead led; leave left; lend lent; lose lost; make made; mean meant; meet met; pay paid; ride rode
ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought; sell sold; send sent; sew sewn;
shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung; sink sank sunk; sit
sat; sleep slept; slide slid; speak spoke spoken; spend spent; spin spun; stand stood; steal stole stolen; stick
stuck; sting stung; strike struck; swear swore sworn; sweep swept; swell swelled swollen; swim swam swum; swing swung;
take took taken; teach taught; tear tore torn; tell told; think thought; throw threw thrown; understand understood;
wake woke woken; wear wore worn; weave wove woven; weep wept; win won; wind wound; write wrote written; child
children; person people; man men; woman women; foot feet; tooth teeth; mouse mice; goose geese; life lives; wife
wives; knife knives; leaf leaves; half halves; shelf shelves; good better best; bad worse worst
"""

BASE = {form: base for group in FORMS.split(";") for base, *forms in (group.split(),) for form in forms}
"""The base form of each irregular form: `wrote` and `written` have `write`."""


STOP_WORDS = """
a about all also an and any are aren as at be been but by can could couldn d did didn do does doesn don for from had
has hasn have haven he her hey him his how i if in into is isn it its just kind ll m many me my no not of oh on or our
out re really s she should so some such t than that the their them then there these they this to too type up ve was
wasn we were what when where which while who why will with won would wow yeah you your
"""
STOP = frozenset(STOP_WORDS.split())
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0971-\u0dff"
SPACED_WORD = re.compile(r"[a-z0-9]+")
ANY_WORD = re.compile(rf"(?P<run>[{UNSPACED}]+)|(?:[^\W_{UNSPACED}]|[{MARKS}])+")
FUNCTION_CHARACTERS = frozenset("的了吗呢吧啊么着过在是我你他她它们这那和与就都也很不有什")

_stem = Stemmer.Stemmer("english", maxCacheSize=0).stemWord


@remember(1 << 15)
def stem(word: str) -> str:
    """Return the stem of a lower-case English word; other words are returned unchanged."""
    found = str(_stem(BASE.get(word, word))) if word.isascii() else word
    return word if found == word else found  # if both are equal, one object saves memory


def plain_words(text: str) -> list[str]:
    """Return all words of a text in lower case, not stemmed; scripts without spaces as bigrams."""
    text = text.lower()
    if text.isascii():
        return SPACED_WORD.findall(text)
    words: list[str] = []
    for found in ANY_WORD.finditer(unicodedata.normalize("NFKC", text)):
        if found["run"]:
            words.extend(_pairs(found["run"]))
        else:
            words.append(_without_accents(found[0]))
    return words


def terms(text: str) -> list[str]:
    """Return the terms by which a text is indexed and searched: its words, without stop words, stemmed."""
    # Numbers are their own stem, and there are too many of them to be cached.
    return [word if word.isdecimal() else stem(word) for word in plain_words(text) if word not in STOP]


def _pairs(run: str) -> list[str]:
    """Return the pairs of neighbouring characters of a run, except pairs of two FUNCTION_CHARACTERS. A run of one
    character is returned as it is, unless that is a function character."""
    if len(run) == 1:
        return [] if run in FUNCTION_CHARACTERS else [run]
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return [pair for pair in pairs if not (pair[0] in FUNCTION_CHARACTERS and pair[1] in FUNCTION_CHARACTERS)]


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not "\u0300" <= c <= "\u036f")


T = TypeVar("T")
MAX_READ = 2_000
"""Maximum number of characters that rules read; of a longer text, they read only the beginning and the end."""
SENTENCE = re.compile(r"(?:[^.!?;。！？；\n]|[.!?;](?=\w))+[.!?;。！？；]*")
"""A sentence with its punctuation. An ASCII mark before a letter or digit does not end a sentence: 184.00,
example.org."""


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, by Latin or Chinese punctuation, without surrounding space."""
    return [found[0].strip() for found in SENTENCE.finditer(text)]


def both_ends(text: str) -> str:
    """Return a text; if it is longer than MAX_READ characters, its beginning and its end on two lines."""
    return text if len(text) <= MAX_READ else f"{text[: MAX_READ // 2]}\n{text[-MAX_READ // 2 :]}"


def first_and_last(items: Sequence[T], most: int) -> Sequence[T]:
    """Return the items; if there are more than `most`, only the first `most // 2` and the last `most // 2`."""
    return items if len(items) <= most else [*items[: most // 2], *items[-(most // 2) :]]


def batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Yield items in order, at most `size` at a time."""
    return ([*items[at : at + size]] for at in range(0, len(items), size))


def windows(text: str, size: int) -> Iterator[str]:
    """Yield the windows of a text: parts of `size` characters that overlap by half. The last window may be shorter. A
    shorter text is yielded as a whole."""
    yield text[:size]
    step = size // 2
    for at in range(step, len(text) - step, step):
        yield text[at : at + size]


Language: TypeAlias = str
"""A language code: en, zh, …"""
CJK = re.compile(r"[\u3400-\u9fff]")


def language_of(text: str, among: tuple[Language, ...] = ("en", "zh")) -> Language:
    """Return the language of a text, one of `among`.

    The result is "zh" if `among` has "zh" and over a fifth of the text's letters are Chinese characters. Otherwise the
    result is the first other language of `among`; "zh" if there is no other language.
    """
    if "zh" in among and len(CJK.findall(text)) * 5 > sum(map(str.isalpha, text)):  # more than one letter in five
        return "zh"
    return next((language for language in among if language != "zh"), among[0])


def simplify(text: str) -> str:
    """Return a text with simplified characters in place of traditional ones; each character keeps its position."""
    return text if text.isascii() else text.translate(_table())


@lru_cache(1)
def _table() -> dict[int, int]:
    lines = Path(__file__).with_name("traditional.txt").read_text("utf-8").splitlines()
    return str.maketrans("".join(lines[::2]), "".join(lines[1::2]))


WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}][^\s{UNSPACED}]*")


def count_of(n: int, noun: str) -> str:
    """Return a number with its noun: 1 step, 2 steps, 1,200 steps. The plural s is put before " of ", or at the end."""
    head, of, rest = noun.partition(" of ")
    return f"{n:,} {head}{'s' * (n != 1)}{of}{rest}"


def count_words(text: str) -> int:
    """Return the number of words of a text; in scripts without spaces each character counts as one."""
    return sum(1 for _ in WORD.finditer(text))
