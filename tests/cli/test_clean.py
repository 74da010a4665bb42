from __future__ import annotations

import json
from typing import Any

import pytest
from keys import key_of
from rich.console import Console

from mindstream.cli.screens.talk import Flow
from mindstream.cli.shell.output import clean, complain, escape_json, say, short

HOSTILE = {
    "a title": ("a\x1b]0;evil\x07b", "ab"),
    "a link": ("\x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\", "here"),
    "the clipboard": ("\x1b]52;c;ZXZpbA==\x07", ""),
    "a sequence without an end hides nothing": ("\x1b]0;I will hurt you", "0;I will hurt you"),
    "colours and the cursor": ("\x1b[2J\x1b[31mred\x1b[0m", "red"),
    "a reset": ("\x1bcback", "back"),
    "C1": ("\x9b31mred \x9d0;t\x9c\x85", "red 0;t"),
    "back over what was said": ("safe\rEVIL\x08\x08", "safeEVIL"),
    "turned around": ("\u202eolleh\u202c \u2066x\u2069 \u200e\u200f\u061c", "olleh x "),
    "without width": ("pass\u200bword\ufeff \u2060x\xady", "password xy"),
    "tags, which spell in secret": ("hi\U000e0068\U000e0069\U000e007f", "hi"),
    "variants by the dozen, which spell in secret": ("a" + "\ufe00\U000e0101" * 50, "a\ufe00"),
    "joiners where nothing joins": ("an\u200dn\u200c", "ann"),
    "joiners by the thousand": ("क" + "\u200d" * 1000, "क\u200d"),
    "half a letter": ("a\ud800b", "ab"),
}
NEEDED = [
    "می‌خواهم بخوابم",  # Persian: a zero-width non-joiner within a word
    "क्‍ष और शृंखला",  # Hindi: a zero-width joiner after a virama
    "שלום, מה שלומך? العربية",
    "👨‍👩‍👧 ❤️ 1️⃣ 🇩🇪 👍🏽",
    "ᠮᠣᠩᠭᠣᠯ ᠊᠊ᠠ᠋",  # Mongolian: a variant of a letter
    "葛󠄀 한국어 ไทย naïve e\u0301",
    "tab\tand\nline",
]


@pytest.mark.parametrize(("text", "seen"), HOSTILE.values(), ids=HOSTILE)
def test_control_characters_and_direction_marks_are_removed(text: str, seen: str) -> None:
    assert clean(text) == seen


@pytest.mark.parametrize("text", NEEDED)
def test_characters_needed_by_scripts_are_kept(text: str) -> None:
    assert clean(text) == text
    assert flowed(list(text)) == text


def flowed(pieces: list[str], width: int = 0) -> str:
    written: list[str] = []
    flow = Flow(written.append, width, 0)
    for piece in pieces:
        flow.add(piece)
    flow.end()
    return "".join(written)[:-1]


@pytest.mark.parametrize("text", [text for text, _ in HOSTILE.values() if "\x1b" not in text])
def test_streamed_text_is_cleaned_like_the_whole(text: str) -> None:
    assert flowed(list(text)) == clean(text)


def test_split_escape_sequences_are_removed_and_unterminated_ones_shown() -> None:
    assert flowed(["a\x1b", "]0;ev", "il", "\x07b"]) == "ab"
    assert flowed(["a\x1b]0;I will", " hurt you"]) == "a0;I will hurt you"


@pytest.mark.parametrize(
    "atom", ["\u200b", "\u202e", "\u200d", "क\u200d", "\ufe0f", "a\u0301", "\x1b[", "\x1b]0", "\x9b0"]
)
def test_cleaning_takes_linear_time(atom: str) -> None:
    text = atom * (400_000 // len(atom))  # quadratic time would take minutes
    assert len(flowed([text], 80)) <= 2 * len(text)


def test_escaped_json_is_equal_json_without_control_characters() -> None:
    row: dict[str, Any] = {name: text for name, (text, _) in HOSTILE.items()} | {"needed": NEEDED, "\x7f": 1}
    line = escape_json(json.dumps(row, ensure_ascii=False))
    assert json.loads(line) == row
    assert not set(line) & set("\x1b\x7f\x9b\x9d\u202e\u200b\ufeff\U000e0068\ud800")
    assert "می‌خواهم" in line


def test_errors_are_cleaned_and_limited_in_length(capsys: pytest.CaptureFixture[str]) -> None:
    complain("a\x1b]0;evil\x07b\u202e " + "x" * 100_000)
    say("\x9b31mred")
    told = capsys.readouterr()
    assert told.err.startswith("mindstream: ab xxx") and len(told.err) < 3000
    assert told.out == "red\n"
    assert short("a\u200b\n\x1b[31mb", 10) == "a b"


def test_a_slow_model_is_reported_once_per_utterance(capsys: pytest.CaptureFixture[str]) -> None:
    from mindstream.cli.screens.talk import TextScreen
    from mindstream.log.events import Logged, Piece, Reading

    screen = TextScreen(Console(highlight=False), echo=False, timed=False, verbose=True)
    reads, speaks = Reading(model="ollama:m\x1b[31m", answers=1), Piece(text="Hello.", answers=1)
    for event in (reads, reads, reads, speaks):
        screen.show(Logged(0, key_of("ann"), 1e9, "coach", event))
    screen.broken_off()
    assert capsys.readouterr().out.splitlines() == ["coach: … ollama:m is reading", "coach: Hello."]


def test_events_of_unknown_kinds_are_shown_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    from mindstream.cli.screens.talk import JsonScreen, TextScreen
    from mindstream.log.events import Event, Logged, Waiting

    class SetAside(Event):
        kind = "set_aside"
        slot: str = "sleep"
        about: tuple[int, ...] = (3,)
        reason: str = "the model \x1b[31mrefuses\u202e"
        attempts: int = 4

    class Newer(Event):
        kind = "newer_kind"
        colour: str = "r\x85e\u202ed"

    class Unknown(Event):
        kind = "unknown"
        named: str = "from_afar"
        payload: str = "{}"

    screen = TextScreen(Console(highlight=False), echo=False, timed=False, verbose=True)
    for event in (
        SetAside(), Newer(), Unknown(), Waiting(text="One moment.", slots=("sleep",), answers=1, belief_version=0),
        Waiting(text="Still at it.", slots=("sleep",), answers=1, belief_version=0),
    ):  # fmt: skip
        for shown in (screen, JsonScreen()):
            shown.show(Logged(7, key_of("ann"), 1e9, "coach", event))
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith("{")] == [
        "  · sleep: given up after 4 attempts: the model refuses", "  · newer kind: colour: red",
        "  · from afar: named: from_afar; payload: {}", "coach: One moment.", "coach: Still at it.",
    ]  # fmt: skip
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    assert [row["event"] for row in rows] == ["set_aside", "newer_kind", "unknown", "waiting", "waiting"]
    assert rows[0]["at"] == 1e9 and rows[1]["colour"] == "r\x85e\u202ed"
