from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindstream.text.links import links, pieces_without_links, without_links

GIVEN = links(["https://www.sleep.org/a"])


@pytest.mark.parametrize(
    "text",
    [
        "https://sleep.org/a",
        "http://www.Sleep.org/a/", "sleep.org/a.", "(see https://sleep.org/a)", "看https://sleep.org/a。",
        "[this](https://sleep.org/a)",
        "no link: 10.30/11.30, a.m./p.m., and/or, e.g. this, ann@b.com, 3.5 h", 
        "Node.js",
    ],
)  # fmt: skip
def test_given_links_are_kept(text: str) -> None:
    assert without_links(text, GIVEN) == (text, [])


@pytest.mark.parametrize(
    ("text", "left", "gone"),
    [
        ("See https://evil.example/x.", "See ….", "evil.example/x"),
        ("See evil.com", "See …", "evil.com"),
        ("HTTPS://EVIL.EXAMPLE/", "…/", "evil.example"),
        ("[this](javascript://evil)", "[this](…)", "evil"),
        ("看https://evil.cn/x了解", "看…了解", "evil.cn/x"),
        ("https://sleep.org/a@evil.com", "…", "sleep.org/a@evil.com"),
        ("https://sleep.org@evil.com/a", "…", "sleep.org@evil.com/a"),
        ("https://sleep.org.evil.com/a", "…", "sleep.org.evil.com/a"),
        ("See пример.рф/путь now", "See … now", "пример.рф/путь"),
        ("[this](<javascript: alert(1)>)", "[this](…: alert(1)>)", "javascript"),
    ],
)
def test_links_that_were_not_given_are_removed(text: str, left: str, gone: str) -> None:
    assert without_links(text, GIVEN) == (left, [gone.removeprefix("www.")])


async def _pieces(*pieces: str) -> AsyncGenerator[str]:
    for piece in pieces:
        yield piece


async def passed(*pieces: str) -> list[str]:
    return [piece async for piece in pieces_without_links(_pieces(*pieces), lambda: GIVEN)]


async def test_the_first_piece_is_not_delayed() -> None:
    source = pieces_without_links(_pieces("Hello", " there"), lambda: GIVEN)
    assert await anext(source) == "Hello"
    assert await passed("Hello", " there", " and", " who") == ["Hello", " there", " and", " who"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Read https://evil.example/x?y=1#z, please.", "Read …, please."),
        ("Read https://sleep.org/a, please.", "Read https://sleep.org/a, please."),
        ("At www.evil.example", "At …"),
        ("when he was at home, http was new", "when he was at home, http was new"),
    ],
)
async def test_a_link_split_over_pieces_is_removed(text: str, left: str) -> None:
    for size in range(1, len(text) + 1):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert "".join(await passed(*pieces)) == left


@given(st.lists(st.text("htps:/. evilsleep.org/a,<>[]()!?=w"), max_size=12))
async def test_no_link_passes_in_one_piece_or_in_their_concatenation(pieces: list[str]) -> None:
    said = "".join(await passed(*pieces))
    assert links([said]) <= GIVEN
    if not links(["".join(pieces)]) and "<" not in "".join(pieces):
        assert said == "".join(pieces)


async def test_an_endless_link_is_removed_without_waiting() -> None:
    pieces = await passed("https://", *["a" * 500] * 20, " and", " more")
    assert pieces == ["…", " and", " more"]


FORMS = [
    "![a cat](https://spy.test/c.png?q=zqword)", "![a cat](//spy.test/zqword)", "![a cat]( //spy.test/zqword )",
    "[here](<https://spy.test/zqword>)", "<https://spy.test/zqword>", "<img alt=cat src=https://spy.test/zqword>",
    '<a href="&#104;ttps&colon;//spy.test/zqword">go</a>', "<img src='/\n/spy.test/zqword'>",
    "<source srcset='https://spy.test/1 1x, https://spy.test/zqword 2x'>", "<svg/onload=fetch('//spy.test/zqword')>",
    "![c][1]\n\n[1]: https://spy.test/zqword 'title'", "HTTPS:spy.test/zqword", "https:\\\\spy.test\\zqword",
    "ftps://spy.test/zqword", "wss://spy.test/zqword", "mailto:me@spy.test?subject=zqword", "spy.test?zqword",
    "spy.test/a/zqword", "www.spy.test/zqword", "ｈｔｔｐｓ：／／spy.test/zqword",
    "https:\u200b//spy\u200b.test/zqword",
    "ht\ntps://spy.test/zqword", "[run](javascript:zqword())", "[see](data:text/html,zqword)", "[x](vbscript:zqword)",
    "![x](/\\spy.test/zqword)", "https://ѕру.test/zqword", "https://sleep.org/a?q=zqword", "https://sleep.org/a/zqword",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 4, 1000])
async def test_no_form_of_an_unknown_address_passes(form: str, size: int) -> None:
    text = f"Look: {form} That is all."
    said = "".join(await passed(*(text[at : at + size] for at in range(0, len(text), size))))
    assert "zqword" not in said.replace("\u200b", "")
    assert said.startswith("Look: ") and said.endswith(" That is all.")


@pytest.mark.parametrize(
    "text",
    [
        "if a<b then i<max; vector<int> v; <b>bold</b> and `<div class='x'>`", 
        "Ratio 3:4, C:\\dir\\x.txt, at 10:30/11.",
        "Note: this, //todo, std::vector, data:none, Node.js/React, w/o, 24/7, e.g./i.e.", "price: 5.–/kg (a.b)",
        "see https://sleep.org/a), [x](https://www.sleep.org/a) or <https://sleep.org/a>", "看https://sleep.org/a。好",
    ],
)  # fmt: skip
async def test_text_without_unknown_addresses_is_unchanged(text: str) -> None:
    for size in (1, 3, 1000):
        assert "".join(await passed(*(text[at : at + size] for at in range(0, len(text), size)))) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("See https://sleep.org/a", "See https://sleep.org/a"),
        ("![a big moon](https://sleep.org/a)", "![a big moon](…)"),
        ("[1]: https://sleep.org/a", "[1]: …"),
        ("<img width=1 src='https://sleep.org/a'>", "…"),
    ],
)
async def test_an_address_from_a_document_is_shown_but_not_loaded(text: str, left: str) -> None:
    pieces = pieces_without_links(_pieces(*text), lambda: GIVEN, frozenset)
    assert "".join([piece async for piece in pieces]) == left
