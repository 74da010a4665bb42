"""Decode text files, which may be in any encoding that Windows, Excel and old documents produce.

`decode_text` detects the encoding (chardet) and reports which one was used; documents and other prose use it.
`decode_utf` takes the Unicode encodings only and names the encoding that it found instead; formats that are UTF-8 by
specification (TOML, JSON, YAML, prompts) use it. `decode_clear` takes any encoding that is certain (tables).
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from mindstream.errors import InputError

SAMPLE = 100_000
"""Maximum number of bytes from which an encoding is detected."""
WORDS, LONGEST_WORD = 400, 100
"""Maximum number of words that are checked for plausible letters, and of characters of each."""
CLEAR, TIE = 1.25, 1.03
"""A detection is certain if it scores CLEAR times the next different text; within TIE the more usual one is used."""
DAMAGED = 4
"""A text with this many valid UTF-8 characters for each invalid byte is damaged UTF-8, not another encoding."""
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
SINGLE = (
    "cp1252",
    "cp1250",
    "cp1251",
    "cp1253",
    "cp1254",
    "cp1255",
    "cp1256",
    "cp1257",
    "cp874",
    "iso8859-15",
    "iso8859-2",
    "iso8859-5",
    "iso8859-7",
    "koi8-r",
    "mac-roman",
    "cp850",
    "cp437",
    "cp866",
)
EASTERN = ("cp932", "cp949", "big5", "gb18030", "euc-jp", "iso-2022-jp")
CANDIDATES = (*SINGLE, *EASTERN, *WIDE, "utf-8")
"""The encodings that are detected, more usual ones before others of the same kind."""
NAMES = {
    "cp932": "Shift_JIS",
    "shift_jis_2004": "Shift_JIS",
    "cp949": "EUC-KR",
    "big5hkscs": "Big5",
    "big5": "Big5",
    "gb18030": "GB18030",
    "euc_jis_2004": "EUC-JP",
    "euc-jp": "EUC-JP",
    "iso2022_jp_2": "ISO-2022-JP",
    "iso2022-jp": "ISO-2022-JP",
    "koi8-r": "KOI8-R",
    "mac-roman": "Mac Roman",
    "utf-8-sig": "UTF-8",
}
USUAL = 1.12
"""Factor of the score of windows-1252, which is far more frequent than its neighbours."""
FEW = 20
"""At most one of this many bytes of an 8-bit text is a control character."""
UNUSUAL = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")
"""Control characters of which an 8-bit text holds few; UTF-16 and UTF-32 hold many."""
ISO_2022 = re.compile(rb"\x1b\$[@AB(]")
"""Where ISO-2022-JP, -KR or -CN turns to two-byte characters: it is ASCII otherwise."""
BELOW_LETTERS = bytes(range(0x40))
SIGNS = frozenset("€£¥¢°§©®™«»‹›“”„‘’‚…–—·•¿¡²³½¼¾×±ªº´¸¦µ№、。「」，！？：；（）")
"""Characters beyond letters that texts hold."""
BETWEEN = frozenset("’‘–—·‐")
"""Those of them that may stand between two letters."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text and the encoding that it was in.

    Attributes:
        encoding: a name for people: "UTF-8", "windows-1252".
        certain: False: the encoding is the most likely one, and another is possible.
    """

    text: str
    encoding: str
    certain: bool = True

    @property
    def note(self) -> str:
        """What the user is told of it; "" for UTF-8, UTF-16 and UTF-32."""
        if self.encoding.startswith("UTF-") and self.certain:
            return ""
        return f"read as {self.encoding}" + ("" if self.certain else " (assumed)")


def decode_text(content: bytes) -> Decoded:
    """Decode a text in any encoding.

    Raises:
        InputError: it is not text, or its encoding is unknown; the message continues after the file's name.
    """
    if (found := _unicode(content)) is not None:
        return found
    if content.startswith(codecs.BOM_UTF8):  # the mark says what it is, however damaged
        return Decoded(content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace"), "UTF-8", certain=False)
    if (damaged := _damaged(content)) is not None:
        return damaged
    ranked = sorted(_ranked(content[:SAMPLE]), key=lambda each: -each[0])
    likely = [each for each in ranked if each[0] * TIE >= ranked[0][0]]
    usual = sorted(likely, key=lambda each: SINGLE.index(each[1]) if each[1] in SINGLE else len(SINGLE))
    for score, codec, sample in (*usual, *ranked[len(likely) :]):
        try:
            text = content.decode(codec)
        except UnicodeDecodeError:
            continue
        other = next((score for score, _, text in ranked if text != sample), 0.0)
        return Decoded(text, _shown(codec), score >= CLEAR * other)
    if (wide := _widest(content)) is not None:
        return replace(wide, certain=False)
    raise InputError("is not text, or is in an unknown encoding; save it as UTF-8")


def decode_clear(content: bytes) -> str:
    """Decode a text in any encoding that is detected for certain.

    Raises:
        InputError: it is not text, or its encoding is not certain; the message continues after the file's name.
    """
    found = decode_text(content)
    if not found.certain:
        raise InputError(f"is not UTF-8 text; it is probably {found.encoding}, which is not certain: save it as UTF-8")
    return found.text


def decode_utf(content: bytes) -> str:
    """Decode UTF-8, UTF-16 or UTF-32, with or without a byte order mark.

    Raises:
        InputError: it is in another encoding, which is named; the message continues after the file's name.
    """
    if (found := _unicode(content)) is not None:
        return found.text
    try:
        other = decode_text(content)
    except InputError:
        raise InputError("is not UTF-8 text") from None
    raise InputError(f"is not UTF-8 text; it is probably {other.encoding}: save it as UTF-8")


def _unicode(content: bytes) -> Decoded | None:
    """Decode a text that is certainly Unicode; None: it is not."""
    for mark, codec in BOMS:
        if content.startswith(mark):
            try:
                return Decoded(content.decode(codec).removeprefix("\ufeff"), _shown(codec))
            except UnicodeDecodeError:
                return None
    if ISO_2022.search(content[:SAMPLE]):
        return None
    is_wide = len(UNUSUAL.findall(content[:SAMPLE])) * FEW > len(content[:SAMPLE])
    if is_wide and (wide := _widest(content)) is not None:
        return wide
    try:
        return Decoded(content.decode("utf-8"), "UTF-8") if b"\0" not in content[:SAMPLE] else None
    except UnicodeDecodeError:
        return None


def _widest(content: bytes) -> Decoded | None:
    """Decode UTF-16 or UTF-32 without a mark, in the byte order that gives most ASCII and fewest alphabets."""
    texts = [(text, codec) for codec in WIDE if (text := _wide(content, codec)) is not None]
    if not texts:
        return None
    text, codec = min(texts, key=lambda each: (-sum(map(str.isascii, each[0][:1_000])), len(_scripts(each[0][:1_000]))))
    return Decoded(text, _shown(codec))


def _wide(content: bytes, codec: str) -> str | None:
    """Decode UTF-16 or UTF-32 without a mark; None: it holds what no text does."""
    try:
        text = content.decode(codec)
    except UnicodeDecodeError:
        return None
    is_odd = any(_is_no_letter(each) and not each.isspace() for each in text[:SAMPLE])
    scripts = {"CJK" if each in ("HIRAGANA", "KATAKANA") else each for each in _scripts(text[:1_000])}
    return None if is_odd or len(scripts) > min(4, max(1, sum(map(str.isalpha, text[:1_000])) // 4)) else text


def _damaged(content: bytes) -> Decoded | None:
    """Decode UTF-8 with a few invalid bytes, each as U+FFFD; None: it is something else."""
    invalid = 0
    for part in (content[:SAMPLE], content):
        beyond = [each for each in part.decode("utf-8", "surrogateescape") if each > "\x7f"]
        invalid = sum("\udc80" <= each <= "\udcff" for each in beyond)
        if b"\0" in part or ISO_2022.search(part) or len(beyond) - invalid < max(1, DAMAGED * invalid):
            return None
    found = f"UTF-8 with {invalid} invalid byte{'s' * (invalid != 1)}"
    return Decoded(content.decode("utf-8", "replace"), found, certain=False)


def _ranked(sample: bytes) -> Iterator[tuple[float, str, str]]:
    """Yield score, encoding and text of each encoding that the bytes may be in."""
    if b"\0" in sample or len(UNUSUAL.findall(sample)) * FEW > len(sample):
        return
    lines = b"\n".join(dict.fromkeys(sample.splitlines()))
    scores = _detected(lines) | {
        codec: score for codec, score in _detected(lines.translate(None, BELOW_LETTERS)).items() if _is_eastern(codec)
    }
    for codec, score in scores.items():
        try:
            text = codecs.getincrementaldecoder(codec)().decode(sample)  # the sample may end within a character
        except UnicodeDecodeError:
            continue
        score *= USUAL if codec == "cp1252" else 1.0
        yield score / 2 ** _oddities(text), codec, text


def _detected(sample: bytes) -> dict[str, float]:
    from chardet import detect_all

    found = detect_all(
        sample, ignore_threshold=True, include_encodings=CANDIDATES, compat_names=False, prefer_superset=False
    )
    return {each["encoding"]: each["confidence"] for each in found if each["encoding"]}


def _is_eastern(codec: str) -> bool:
    return NAMES.get(codec, codec) in {NAMES.get(each, each) for each in EASTERN}


def _oddities(text: str) -> int:
    """Count what no language writes: letters of two alphabets in a word, signs between letters, a capital after a small
    letter."""
    count = 0
    for word in islice((each[:LONGEST_WORD] for each in text.split() if not each.isascii()), WORDS):
        scripts = _scripts(word)
        count += "LATIN" in scripts and bool(scripts & {"CYRILLIC", "GREEK", "HEBREW", "ARABIC", "THAI"})
        for before, each, after in zip(f" {word[:-1]}", word, f"{word[1:]} ", strict=True):
            if before.islower() and each.isupper() and not (before + each).isascii():
                count += 1
            elif each > "\x7f" and not each.isalpha():
                is_sign = unicodedata.category(each)[0] in "SNC" and each not in SIGNS
                count += is_sign or (each not in BETWEEN and each in SIGNS and before.isalpha() and after.isalpha())
    return min(count, 40)


def _scripts(text: str) -> set[str]:
    """Name the alphabets of the letters of a text."""
    return {unicodedata.name(each, "?").partition(" ")[0] for each in set(text) if each.isalpha() and each not in "ªºµ"}


def _is_no_letter(each: str) -> bool:
    return unicodedata.category(each) in ("Cc", "Cn", "Co", "Cs")


def _shown(codec: str) -> str:
    """Name an encoding to people."""
    if codec.startswith("cp125") or codec == "cp874":
        return f"windows-{codec[2:]}"
    if codec.startswith("cp") and codec not in NAMES:
        return f"DOS code page {codec[2:]}"
    if codec.startswith("iso8859"):
        return f"ISO-8859{codec[7:]}"
    return NAMES.get(codec, codec.upper())
