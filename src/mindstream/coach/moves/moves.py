"""What an utterance does in a conversation: it greets, asks for a plan, dislikes, thanks, …; no model.

A move is made where its sure words stand (moves.yaml), or where the classifier is sure of it in one of the sentences.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

import yaml

from mindstream.caches import remember
from mindstream.text.classifier import Classifier, views
from mindstream.text.language import Language
from mindstream.text.pattern import Pattern, Patterns
from mindstream.text.spelling import correct_spelling
from mindstream.text.windows import both_ends, first_and_last, sentences

FILE = Path(__file__).with_name("moves.npz")
"""Written by benchmarks/train_classifiers.py."""
SURE = 0.0
"""The log odds above which the classifier's word is taken."""
SENTENCES = 40
"""Of a long utterance so many sentences, the first and the last, are classified."""
CLASSIFIED = frozenset({"en", "zh"})
"""The languages that it was trained on."""

ASKS = frozenset({"plan", "stepwise", "resources"})
"""Moves that ask for the Reasoner's work in any phase."""
ADAPTS = frozenset({"dislike", "next", "done", "add"})
"""Moves that change a plan that is there, or that is being made."""
CONSENTS = frozenset({"yes", "okay", "like"})
SOCIAL = frozenset({"greet", "bye", "thanks", "chat", "laugh", "okay", "rude", "later", "who", "recall"})
"""Moves that tell the Reasoner nothing."""
FILLING = frozenset({"question", "yes", "no", "complaint", "like"})
"""Moves that a social sentence may make besides: 'sure, thanks', 'who are you?'."""
PUTS_OFF = frozenset({"later", "vent"})
"""Moves that want no plan now, or only an ear."""
ABOUT_A_STEP = ("plan_again", "why_this", "how_long", "safe", "proof")
"""Questions about the step the user was given, the clearest first; the plan answers them."""


def moves_of(text: str, language: Language) -> frozenset[str]:
    """Name what an utterance does in a conversation: greets, asks for a plan, dislikes, …"""
    plain = plain_text(both_ends(text), language)
    found = _together(language).matching(plain)
    if language not in CLASSIFIED:
        return found
    return found.union(*map(_classified, first_and_last(sentences(plain), SENTENCES)))


def plain_text(text: str, language: Language) -> str:
    """Return a text as patterns and classifier read it: English with the commonest slips put right."""
    return text if language == "zh" else correct_spelling(text.replace("’", "'"))


def move_names() -> tuple[str, ...]:
    """Name the moves that an utterance can make."""
    return tuple(_moves())


@remember(2_000)
def _classified(sentence: str) -> frozenset[str]:
    odds = _classifier().log_odds(views(sentence))
    return frozenset(move for move, value in odds.items() if value > SURE)


@cache
def _classifier() -> Classifier:
    return Classifier(FILE)


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
