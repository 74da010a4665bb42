"""A question as recall understands it: its words, who it is about, and when."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mindstream.clock import Moment
from mindstream.language.dates import Span, spans
from mindstream.language.words import STOP, plain_words, stem
from mindstream.memory.columns import Columns


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a stream.

    Attributes:
        bare: the question without the names of those who speak in the stream: what is embedded to look through talk.
        wordings: what is to be embedded: for talk, and, where that differs and there are any, for other records.
        terms: what is looked up in the index, those names aside.
        name_terms: those names; in talk a name is an address, in other records a subject.
        who: the number of the only one who is named; -1: nobody, or several.
        spans: the stretches of time that it names.
    """

    text: str
    bare: str
    terms: list[str]
    name_terms: list[str]
    who: int
    spans: list[Span]
    wordings: list[str]


def understood(query: str, columns: Columns, now: Moment) -> Question:
    """Read a question against a stream: its speakers' names decide who is asked about."""
    words = plain_words(query)
    named = [(name, code) for name, code in columns.names.items() if _names(name, words)]
    name_words = {word for name, _ in named for word in plain_words(name)}
    kept = [word for word in words if word not in name_words]
    bare = query
    for word in name_words:
        bare = re.sub(rf"(?i)\b{re.escape(word)}(?:['’]s)?\b", " ", bare)
    bare = " ".join(bare.split()) or query
    return Question(
        text=query,
        bare=bare,
        terms=[stem(word) for word in kept if word not in STOP],
        name_terms=[stem(word) for word in words if word in name_words],
        who=named[0][1] if len(named) == 1 else -1,
        spans=spans(query, now),
        wordings=[bare] if columns.only_talk or not name_words else [bare, query],
    )


def _names(name: str, words: list[str]) -> bool:
    """Say whether a question has somebody's name in it: whole, or its first word."""
    own = plain_words(name)
    return bool(own) and own[0] in words and own[0] not in STOP
