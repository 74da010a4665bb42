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
def test_what_was_given_stays(text: str) -> None:
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
    ],
)
def test_what_nobody_gave_is_left_out(text: str, left: str, gone: str) -> None:
    assert without_links(text, GIVEN) == (left, [gone.removeprefix("www.")])


async def _pieces(*pieces: str) -> AsyncGenerator[str]:
    for piece in pieces:
        yield piece


async def passed(*pieces: str) -> list[str]:
    return [piece async for piece in pieces_without_links(_pieces(*pieces), lambda: GIVEN)]


async def test_the_first_piece_does_not_wait() -> None:
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
async def test_a_link_split_over_pieces_is_left_out(text: str, left: str) -> None:
    for size in range(1, len(text) + 1):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert "".join(await passed(*pieces)) == left


@given(st.lists(st.text("htps:/. evilsleep.org/a,"), max_size=12))
async def test_pieces_say_what_the_whole_says(pieces: list[str]) -> None:
    assert "".join(await passed(*pieces)) == "".join(await passed("".join(pieces)))


async def test_a_link_without_end_is_not_waited_for() -> None:
    pieces = await passed("https://", *["a" * 500] * 20)
    assert len(pieces) > 1
