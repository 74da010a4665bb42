"""Text files in the encodings that Windows, Excel and old documents produce."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from mindstream_evals.planning.questions import read_questions

from mindstream.encodings import Decoded, decode_clear, decode_text, decode_utf
from mindstream.errors import InputError
from mindstream.paths import read_text

TEXTS = {
    "cp1252": ("Die Brücke über den Fluß – gesperrt bis März, 5 €.", "L'hôtel est fermé; la clé est là-bas."),
    "cp1250": ("Žluté kolo stojí ve sklepě, děkuji.", "Rower stoi w piwnicy, proszę zamknąć."),
    "cp1251": ("Лодка называется Мария.", "Ключ лежит под ковриком у двери."),
    "cp1253": ("Η βάρκα είναι στο λιμάνι.",),
    "cp1254": ("Kayık limanda, ışıklar sönük, güneş doğdu.",),
    "cp1255": ("הסירה נמצאת בנמל",), "cp1256": ("القارب في الميناء القديم",),
    "cp874": ("เรืออยู่ที่ท่าเรือ",),
    "cp932": ("船は港にあります。", "鍵はマットの下です。"), "euc-jp": ("船は古い港にあります。",),
    "iso2022_jp": ("船は港にあります。",),
    "gb18030": ("船在旧港口里，钥匙在垫子下面。", "钥匙在哪里"),
    "big5": ("船在舊港口裡，鑰匙在墊子下面。",),
    "euc_kr": ("배는 항구에 있습니다.", "열쇠는 매트 아래에 있습니다."),
    "koi8_r": ("Ключ лежит под ковриком у двери.",),
    "iso8859_2": ("Źródło jest poniżej ścieżki, gęś też.",),
    "iso8859_5": ("Ключ лежит под ковриком у двери.",),
    "mac_roman": ("Die Brücke über den Fluß “gesperrt” bis März.", "L'hôtel est fermé; la clé est là-bas."),
    "utf_16_le": ("The key is under the mat.", "Ключ", "船は港にあります。"),
    "utf_16_be": ("The key is under the mat.", "Лодка"),
    "utf_16": ("Der Schlüssel",), "utf_8_sig": ("Der Schlüssel",), "utf_32_le": ("The key",),
    "utf_8": ("Der Schlüssel 船",),
}  # fmt: skip


TEXTS |= {
    "cp852": ("Zażółć gęślą jaźń, Łódź i Kraków są piękne.", "Příliš žluťoučký kůň běží přes řeku."),
    "koi8-u": ("Їжак і ґава їдуть у Київ на своєму возі.",),
    "iso8859-6": ("كان الجو جميلا اليوم وذهبنا الى البحر",),
}


@pytest.mark.parametrize("lines", [1, 3])
@pytest.mark.parametrize("codec", TEXTS)
def test_encodings_of_short_texts_are_detected(codec: str, lines: int) -> None:
    for text in TEXTS[codec]:
        whole = "\r\n".join(f"{text} {n}" for n in range(lines))
        found = decode_text(whole.encode(codec))
        assert found.text == whole, found
        if codecs.lookup(codec).name.startswith("utf"):
            assert decode_utf(whole.encode(codec)) == whole and not found.note
        else:
            assert found.note.startswith(f"read as {found.encoding}")
            with pytest.raises(
                InputError, match=f"is not UTF-8 text; it is probably {found.encoding}: save it as UTF-8"
            ):
                decode_utf(whole.encode(codec))


def test_binary_files_are_refused_and_damaged_utf_8_is_still_utf_8() -> None:
    for content in (
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        bytes(range(256)) * 3,
        b"PK\x03\x04\x14\0\x08\0",
        b"\0" * 99,
        b"a\0b",
    ):
        for decode in (decode_text, decode_utf, decode_clear):
            with pytest.raises(InputError, match="is not"):
                decode(content)
    found = decode_text("Ključ je pod otiračem, žuti čamac".encode() + b" \xff!")
    assert "Ključ" in found.text and found.note == "read as UTF-8 with 1 invalid byte (assumed)"
    assert decode_text(b"caf\xe9\x07 " + b"y" * 3_000_000).text.startswith("café")


def test_an_uncertain_encoding_is_reported_or_refused() -> None:
    uncertain = "Dviratis yra rūsyje, žąsis".encode("cp1257")
    assert decode_text(uncertain).note.endswith("(assumed)")
    with pytest.raises(InputError, match="which is not certain: save it as UTF-8"):
        decode_clear(uncertain)


TABLES = {
    "Excel, semicolons": ("question;answer\r\nWie heißt die Brücke über den Fluß?;\"Grüne; alte\"\r\n", "cp1252"),
    "Excel, UTF-16 and tabs": ("question\tanswer\r\nWie heißt die Brücke?\tGrüne; alte\r\n", "utf-16"),
    "Excel, CSV UTF-8": ("question;answer\r\nWie heißt die Brücke?;\"Grüne; alte\"\r\n\r\n;\r\n", "utf-8-sig"),
    "Excel's own line": ("sep=|\r\nquestion|answer\r\nWas, wie?|Grüne; alte\r\n", "utf-8"),
    "columns in another order": ('answer,question\n"Grüne; alte",Wie heißt die Brücke?\n', "utf-8"),
}  # fmt: skip


@pytest.mark.parametrize("codec", ["euc-jp", "cp932", "gb18030", "big5"])
@pytest.mark.parametrize("times", [2, 5, 20])
def test_repeated_east_asian_texts_are_not_mixed_up(codec: str, times: int) -> None:
    line = "先生は学校の前で待っていました。" if codec in ("euc-jp", "cp932") else "他今天在門口等了很久，天很好。"
    whole = f"{line}\n" * times
    assert decode_text(whole.encode(codec)).text == whole


CESU = "\ud83d\ude00"
"""A character as two surrogates, each written in three bytes."""


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("Größe\0 und Maß des Schlüssels\r\n", None),
        ("Größe\0 und Maß des Schlüssels, zwei\r\n", None),
        ("船は港にあります。鍵はマットの下です。\0\n", None),
        ("The key is under the mat.\n" * 3 + "\0\0", None),
        (f"smile {CESU} end", "smile 😀 end"),
        (f"\ufeffGrüße {CESU}{CESU}", "Grüße 😀😀"),
        (f'{{"text": "{CESU} 船"}}', '{"text": "😀 船"}'),
    ],
)
def test_utf_8_with_nul_characters_or_surrogate_pairs_is_read_as_utf_8(given: str, meant: str | None) -> None:
    content = given.encode("utf-8", "surrogatepass")
    assert decode_text(content) == Decoded(meant or given, "UTF-8")
    assert decode_utf(content) == decode_clear(content) == (meant or given)


@pytest.mark.parametrize("codec", ["utf-16", "utf-32", "utf-8-sig"])
def test_a_cut_text_with_a_mark_is_read_up_to_the_cut(codec: str) -> None:
    found = decode_text("Größe und Maß é".encode(codec)[:-1])
    assert found.text.startswith("Größe und Maß ") and not found.certain


@pytest.mark.parametrize("name", TABLES)
def test_question_sets_in_spreadsheet_encodings_are_read(name: str, tmp_path: Path) -> None:
    text, codec = TABLES[name]
    (tmp_path / "set.csv").write_bytes(text.encode(codec))
    (question,), form = read_questions(tmp_path / "set.csv")
    assert (question.answers, form) == (("Grüne; alte",), "plain")


def test_non_utf_8_settings_files_are_refused_with_the_detected_encoding(tmp_path: Path) -> None:
    file = tmp_path / "mindstream.toml"
    for codec in ("utf-8-sig", "utf-16"):
        file.write_bytes('user = "Zoë"\n'.encode(codec))
        assert read_text(file, 1_000) == 'user = "Zoë"\n'
    file.write_bytes("# Größe der Brücke über den Fluß\n".encode("cp1252"))
    with pytest.raises(InputError, match="it is probably windows-1252: save it as UTF-8"):
        read_text(file, 1_000)
