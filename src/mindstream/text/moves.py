"""What an utterance does in a conversation: it greets, asks for a plan, dislikes, thanks, … (moves.yaml); no model."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import yaml

from mindstream.text.pattern import Pattern, Patterns
from mindstream.text.spelling import correct_spelling
from mindstream.text.windows import both_ends

Language: TypeAlias = str
"""A language code: en, zh, …"""
CJK = re.compile(r"[\u3400-\u9fff]")
BEGINNING = 600
"""How much of an utterance is looked at for what it says besides its moves, in characters."""

ASKS = frozenset({"plan", "stepwise", "resources"})
"""Moves that ask for the Reasoner's work in any phase."""
ADAPTS = frozenset({"dislike", "next", "done", "add"})
"""Moves that change a plan that is there, or that is being made."""
CONSENTS = frozenset({"yes", "okay", "like"})
SOCIAL = frozenset({"greet", "bye", "thanks", "chat", "okay", "rude", "later", "who", "recall"})
"""Moves that tell the Reasoner nothing."""
FILLING = frozenset({"question", "yes", "no", "complaint", "like"})
"""Moves that a social sentence may make besides: 'sure, thanks', 'who are you?'."""
PUTS_OFF = frozenset({"later", "vent"})
"""Moves that want no plan now, or only an ear."""
ABOUT_A_STEP = ("plan_again", "why_this", "how_long", "safe", "proof")
"""Questions about the step the user was given, the clearest first; the plan answers them."""


def language_of(text: str, among: tuple[Language, ...] = ("en", "zh")) -> Language:
    """Tell the language of a text by its script; the first of `among` where it cannot be told."""
    if "zh" in among and len(CJK.findall(text)) * 5 > sum(map(str.isalpha, text)):  # one says as much as four letters
        return "zh"
    return next((language for language in among if language != "zh"), among[0])


def moves_of(text: str, language: Language) -> frozenset[str]:
    """Name what an utterance does in a conversation: greets, asks for a plan, dislikes, … (moves.yaml)."""
    return _together(language).matching(_plain(both_ends(text), language))


def besides(text: str, language: Language, moves: Collection[str]) -> str:
    """Return what an utterance says besides these moves: its beginning, without the words that make them."""
    text = _plain(text[:BEGINNING], language)
    for name in moves:
        for each in _moves()[name].get(language, ()):
            text = each.without(text)
    return text


def _plain(text: str, language: Language) -> str:
    return text if language == "zh" else correct_spelling(text.replace("’", "'"))


def move_names() -> tuple[str, ...]:
    """Name the moves that an utterance can make."""
    return tuple(_moves())


@lru_cache(1)
def _moves() -> dict[str, dict[Language, list[Pattern]]]:
    raw = yaml.load(Path(__file__).with_name("moves.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader)
    return {
        move: {language: [Pattern(source) for source in sources] for language, sources in by.items()}
        for move, by in raw.items()
    }


@lru_cache
def _together(language: Language) -> Patterns[str]:
    return Patterns({move: by.get(language, []) for move, by in _moves().items()})
