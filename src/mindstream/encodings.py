"""Decode text files, which may be in any encoding that Windows, Excel and old documents produce.

- `decode_text` detects the encoding (chardet) and reports it; it is used for documents and other prose.
- `decode_utf` accepts only Unicode encodings, and its error names the encoding that it found; it is used for formats
  that are UTF-8 by specification (TOML, JSON, YAML, prompts).
- `decode_clear` accepts any encoding that is detected with certainty; it is used for tables.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from mindstream.errors import InputError

SAMPLE = 100_000
"""Maximum number of bytes from which an encoding is detected."""
CLEAR, TIE = 1.25, 1.03
"""CLEAR: minimum ratio of a detected encoding's score to the best score of an encoding that gives a different text.
From this ratio on, the detection is certain.
TIE: maximum ratio of the best score to another score. Among encodings within this ratio, a Windows encoding is
preferred."""
CP1252_BONUS = 1.12
"""Factor for the score of windows-1252, which is far more frequent than similar encodings."""
MAX_WORDS, MAX_WORD = 400, 100
"""MAX_WORDS: maximum number of words with non-ASCII characters that are checked for implausible ones. MAX_WORD: maximum
number of characters that are checked of each word."""
SIGNS = frozenset("€£¥¢°§©®™«»‹›“”„‘’‚…–—·•¿¡²³½¼¾×±ªº´¸¦µ№、。「」，！？：；（）")
"""Non-ASCII signs that are usual in texts."""
UNUSUAL_SIGNS = re.compile("[\ue000-\uf8ff\u3100-\u312f\ufe50-\ufe6f]")
"""Private-use characters, phonetic signs and small punctuation. The encoding Big5 contains many of them, but real texts
contain few: many of them suggest a wrong encoding."""
BETWEEN = frozenset("’‘–—·‐")
"""Characters that may occur between two letters. Between letters, any other character of SIGNS suggests a wrong
encoding."""
DAMAGED = 4
"""A text counts as damaged UTF-8, and not as a text in another encoding, if it has at least this many valid non-ASCII
characters for each invalid byte."""
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
CANDIDATES = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874"),
    *(
        "iso8859-15",
        "iso8859-2",
        "iso8859-5",
        "iso8859-6",
        "iso8859-7",
        "koi8-r",
        "koi8-u",
        "mac-roman",
        "mac-cyrillic",
    ),
    *("cp850", "cp437", "cp852", "cp866"),
    *("cp932", "cp949", "big5", "gb18030", "euc-jp", "iso-2022-jp"),
    *WIDE,
    "utf-8",
)
"""Encodings among which the detection chooses."""
NAMES = {
    "cp932": "Shift_JIS",
    "cp949": "EUC-KR",
    "big5hkscs": "Big5",
    "iso2022_jp_2": "ISO-2022-JP",
    "mac-roman": "Mac Roman",
    "shift_jis_2004": "Shift_JIS",
    "euc_jis_2004": "EUC-JP",
    "utf-8-sig": "UTF-8",
}
BYTES_PER_CONTROL = 20
"""Minimum number of bytes per control character in a text in an 8-bit encoding. Content with more control characters is
binary, or UTF-16 or UTF-32."""
UNUSUAL = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")
"""Control characters that are rare in 8-bit texts and frequent in UTF-16 and UTF-32."""
SURROGATES = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")
"""Matches a character beyond U+FFFF that is encoded as two surrogates, which Java and older databases write in place of
UTF-8 (CESU-8)."""
ISO_2022 = re.compile(rb"\x1b\$[@AB(]")
"""Escape sequence that starts two-byte characters in ISO-2022-JP and -JP-2; such texts have only ASCII bytes."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text and the encoding that it was in.

    Attributes:
        encoding: a name for people: "UTF-8", "windows-1252".
        certain: False: this encoding is the most likely one, but another is possible.
    """

    text: str
    encoding: str
    certain: bool = True

    @property
    def note(self) -> str:
        """A note for the user on the encoding; "" if it is certainly UTF-8, UTF-16 or UTF-32."""
        if self.encoding.startswith("UTF-") and self.certain:
            return ""
        return f"read as {self.encoding}" + ("" if self.certain else " (assumed)")


def decode_text(content: bytes) -> Decoded:
    """Decode a text in any encoding.

    Raises:
        InputError: it is not text, or its encoding is unknown; the caller puts the file's name before the message.
    """
    if (found := _unicode(content)) is not None:
        return found
    for mark, codec in BOMS:  # with such a mark the encoding is known, even if the text is damaged
        text = content.decode(codec, "replace").removeprefix("\ufeff") if content.startswith(mark) else ""
        if text and (mark == codecs.BOM_UTF8 or text.count("\ufffd") * 100 <= len(text) + 100):
            return Decoded(text, _shown(codec), certain=False)
    if (damaged := _damaged(content)) is not None:
        return damaged
    ranked = _ranked(content[:SAMPLE])
    for score, codec, sample in ranked:
        try:
            text = content.decode(codec)
        except UnicodeDecodeError:
            continue
        other = next((score for score, _, text in ranked if text != sample), 0.0)
        return Decoded(text, _shown(codec), score >= CLEAR * other)
    raise InputError("is not text, or is in an unknown encoding; save it as UTF-8")


def decode_clear(content: bytes) -> str:
    """Decode a text in any encoding that is detected with certainty.

    Raises:
        InputError: the content is not text, or the encoding is not certain. The message lacks the file's name; the
            caller puts it first.
    """
    found = decode_text(content)
    if not found.certain:
        raise InputError(f"is not UTF-8 text; it is probably {found.encoding}, which is not certain: save it as UTF-8")
    return found.text


def decode_utf(content: bytes) -> str:
    """Decode UTF-8, UTF-16 or UTF-32, with or without a byte order mark.

    Raises:
        InputError: the text is in another encoding, which the message names if it is known; the caller puts the file's
            name before the message.
    """
    if (found := _unicode(content)) is not None:
        return found.text
    try:
        other = decode_text(content)
    except InputError:
        raise InputError("is not UTF-8 text: save it as UTF-8") from None
    raise InputError(f"is not UTF-8 text; it is probably {other.encoding}: save it as UTF-8")


def _unicode(content: bytes) -> Decoded | None:
    """Decode a text that is certainly in a Unicode encoding; otherwise return None."""
    sample = content[:SAMPLE]
    for mark, codec in BOMS:
        if content.startswith(mark):
            return _decoded(content, codec)
    if ISO_2022.search(sample):
        return None
    if b"\0" not in sample:
        return _decoded(content, "utf-8")
    narrow = None if _is_binary(sample) else _decoded(content, "utf-8")
    if narrow is not None and not narrow.text.isascii():
        return narrow
    wide = next((codec for _, codec, _ in _ranked(sample)), "")
    return (_decoded(content, wide) if wide in WIDE else None) or narrow


def _decoded(content: bytes, codec: str) -> Decoded | None:
    if codec.startswith("utf-8"):
        content = SURROGATES.sub(_joined, content)
    try:
        return Decoded(content.decode(codec).removeprefix("\ufeff"), _shown(codec))
    except UnicodeDecodeError:
        return None


def _joined(pair: re.Match[bytes]) -> bytes:
    """Return the character that two surrogates mean, in UTF-8."""
    return pair[0].decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass").decode("utf-16-le").encode()


def _damaged(content: bytes) -> Decoded | None:
    """Decode UTF-8 with a few invalid bytes, each as U+FFFD; return None if the content is something else."""
    invalid = 0
    for part in (content[:SAMPLE], content):
        beyond = [each for each in part.decode("utf-8", "surrogateescape") if each > "\x7f"]
        invalid = sum("\udc80" <= each <= "\udcff" for each in beyond)
        if _is_binary(part) or ISO_2022.search(part) or len(beyond) - invalid < max(1, DAMAGED * invalid):
            return None
    found = f"UTF-8 with {invalid} invalid byte{'s' * (invalid != 1)}"
    return Decoded(content.decode("utf-8", "replace"), found, certain=False)


def _is_binary(sample: bytes) -> bool:
    """Return whether content has too many control characters for a text in an 8-bit encoding."""
    return len(UNUSUAL.findall(sample)) * BYTES_PER_CONTROL > len(sample)


def _ranked(sample: bytes) -> list[tuple[float, str, str]]:
    """Return (score, encoding, text) of each possible encoding, the most likely one first.

    Among encodings that are nearly as likely as the best (TIE), Windows code pages come first.
    """
    from chardet import detect_all

    is_binary = _is_binary(sample)
    found: list[tuple[float, str, str]] = []
    for each in detect_all(sample, ignore_threshold=True, include_encodings=CANDIDATES, compat_names=False):
        codec = each["encoding"]
        if codec and (codec in WIDE or not is_binary):
            try:
                text = codecs.getincrementaldecoder(codec)().decode(sample)  # the sample may end within a character
            except UnicodeDecodeError:
                continue
            usual = CP1252_BONUS if codec == "cp1252" else 1.0
            found.append((each["confidence"] * usual / 2 ** _oddities(text), codec, text))
    found.sort(key=lambda each: -each[0])
    likely = [each for each in found if each[0] * TIE >= found[0][0]]
    return sorted(likely, key=lambda each: not each[1].startswith("cp125")) + found[len(likely) :]


def _oddities(text: str) -> int:
    """Count patterns that suggest a wrong encoding, at most 40:
    - letters of two alphabets in one word;
    - signs between letters;
    - unusual signs;
    - a capital letter after a small letter, if at least one of the two is beyond ASCII."""
    count = len(UNUSUAL_SIGNS.findall(text[: MAX_WORDS * MAX_WORD]))
    for word in islice((each[:MAX_WORD] for each in text.split() if not each.isascii()), MAX_WORDS):
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
    """Return the scripts of a text's letters, such as LATIN or CYRILLIC, by the first words of their Unicode names."""
    return {unicodedata.name(each, "?").partition(" ")[0] for each in set(text) if each.isalpha() and each not in "ªºµ"}


def _shown(codec: str) -> str:
    """Return the name of an encoding for people."""
    if codec.startswith("cp125") or codec == "cp874":
        return f"windows-{codec[2:]}"
    if codec.startswith("cp") and codec not in NAMES:
        return f"DOS code page {codec[2:]}"
    if codec.startswith("iso8859"):
        return f"ISO-8859{codec[7:]}"
    return NAMES.get(codec, codec.upper())


_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u[dD][89a-fA-F]\w\w|.)", re.DOTALL)
HALF = 6
"""Length in bytes of an escaped half of a surrogate pair, such as `\\ud83d`."""


def whole_json_text(content: bytes) -> bytes:
    """Return JSON without a byte order mark, with U+FFFD for each escaped surrogate whose other half is missing.

    JavaScript writes such a surrogate if it cuts a text within an emoji; most parsers refuse the JSON.
    """
    content = content.removeprefix(codecs.BOM_UTF8)
    if b"\\ud" not in content and b"\\uD" not in content:
        return content
    return _ESCAPE.sub(lambda found: b"\\ufffd" if len(found[0]) == HALF else found[0], content)


def csv_text(columns: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a table as CSV with a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


DELIMITERS = ",;\t|"


def read_csv(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV text, keyed by the names in the first line.

    A line such as `sep=;` before the first line names the delimiter. Without such a line, the delimiter is the one that
    occurs most often in the first line.

    Raises:
        csv.Error: the text is not CSV.
    """
    head, _, rest = text.lstrip("\ufeff\r\n").partition("\n")
    named = head.strip().lower().removeprefix("sep=")
    if head.lower().startswith("sep=") and named in DELIMITERS:  # a line that names the delimiter for Excel
        delimiter, text = named or "\t", rest
    else:
        delimiter = max(DELIMITERS, key=head.count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows.fieldnames = [name.strip() for name in rows.fieldnames or ()]
    return [row for row in rows if any(row.values())]
