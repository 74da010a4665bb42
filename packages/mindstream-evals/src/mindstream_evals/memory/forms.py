"""Read conversations with questions in published formats, which are detected by structure.

LoCoMo (Maharana 2024): samples with `conversation` and `qa`. LongMemEval (Wu 2024): questions, each with its own
`haystack_sessions`. BEAM (Tavakoli 2025): rows with `chat` and `probing_questions`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mindstream.clock import Moment
from mindstream.errors import InputError, prefixed
from mindstream.paths import read_text

LARGEST = 4 << 30
DATES = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d", "%B-%d-%Y", "%Y-%m-%d")
ADVERSARIAL = 5
"""LoCoMo's category of questions that the conversation does not answer."""
LOCOMO_TYPES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", ADVERSARIAL: "adversarial"}
STEP_S = 1.0
"""Assumed seconds between two messages of a session, because the data have times of sessions only."""


@dataclass(frozen=True, slots=True)
class TalkMessage:
    """A message. `by_user`: whether the user wrote it to an assistant; None: the conversation is between
    people."""

    id: str
    session: str
    at: Moment
    by: str
    text: str
    by_user: bool | None = None


@dataclass(frozen=True, slots=True)
class TalkQuestion:
    """A question about a conversation.

    Attributes:
        expected: the expected answer; "" if the conversation does not contain it.
        points: the points that an answer must contain, if the data list them.
        evidence: ids of the messages or sessions that contain the answer.
        at: time of the question; None: after the conversation.
    """

    id: str
    text: str
    type: str
    expected: str
    points: tuple[str, ...] = ()
    evidence: frozenset[str] = frozenset()
    at: Moment | None = None


@dataclass(frozen=True, slots=True)
class AskedTalk:
    """A conversation in order, with questions about it."""

    id: str
    messages: tuple[TalkMessage, ...]
    questions: tuple[TalkQuestion, ...]

    @property
    def ends(self) -> Moment:
        """The time of the last message."""
        return max((each.at for each in self.messages), default=0.0)


def read_talks(file: Path) -> tuple[str, list[AskedTalk]]:
    """Read a file; return the name of its format, and its conversations that have messages and questions.

    Raises:
        InputError: the file cannot be read, has none of the formats, or has an invalid part.
    """
    with prefixed(file):
        text = read_text(file, LARGEST)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not valid JSON: {error}") from None
    rows = found.get("rows", [found]) if isinstance(found, dict) else found
    rows = [row.get("row", row) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    for name, sign, read in (
        ("LoCoMo", ("conversation", "qa"), _locomo),
        ("LongMemEval", ("haystack_sessions", "question"), _longmemeval),
        ("BEAM", ("chat", "probing_questions"), _beam),
    ):
        if rows and all(key in row for row in rows for key in sign):
            try:
                talks = [read(row, n) for n, row in enumerate(rows, 1)]
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise InputError(
                    f"{file} has the top-level keys of {name}, but a part of it is invalid: {error!r}"
                ) from None
            return name, [talk for talk in talks if talk.messages and talk.questions]
    raise InputError(f"{file} has none of the formats LoCoMo, LongMemEval and BEAM (described in docs/memory.md)")


def _locomo(sample: Mapping[str, Any], n: int) -> AskedTalk:
    talk, messages = sample["conversation"], list[TalkMessage]()
    numbers = (key.removeprefix("session_") for key in talk if isinstance(talk[key], list))
    for number in sorted(int(each) for each in numbers if each.isdigit()):
        at = _moment(talk.get(f"session_{number}_date_time", ""), messages)
        for place, turn in enumerate(talk[f"session_{number}"]):
            shows = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            messages.append(
                TalkMessage(turn["dia_id"], f"{number}", at + place * STEP_S, turn["speaker"], turn["text"] + shows)
            )
    questions = []
    for place, asked in enumerate(sample["qa"], 1):
        category = asked.get("category")
        expected = "" if category == ADVERSARIAL else str(asked.get("answer", ""))
        questions.append(
            TalkQuestion(
                f"{place}",
                str(asked["question"]),
                LOCOMO_TYPES.get(category, str(category)),
                expected,
                evidence=frozenset(_turn_ids(asked.get("evidence") or ())) & {each.id for each in messages},
            )
        )
    return AskedTalk(str(sample.get("sample_id", n)), tuple(messages), tuple(questions))


def _turn_ids(named: Sequence[str]) -> Iterator[str]:
    """Yield the ids of turns that are named as evidence, such as D8:6. One text may name several; leading zeros are
    removed."""
    for word in " ".join(named).replace(";", " ").replace(",", " ").split():
        session, _, turn = word.removeprefix("D").strip(":").rpartition(":")
        if session.isdigit() and turn.isdigit():
            yield f"D{int(session)}:{int(turn)}"


def _longmemeval(row: Mapping[str, Any], n: int) -> AskedTalk:
    messages, told = list[TalkMessage](), list[str]()
    dates = row.get("haystack_dates") or []
    names = row.get("haystack_session_ids") or [f"session {place}" for place in range(len(row["haystack_sessions"]))]
    for place, (name, session) in enumerate(zip(names, row["haystack_sessions"], strict=True)):
        at = _moment(dates[place] if place < len(dates) else "", messages)
        for turn, said in enumerate(session):
            id_ = f"{place}:{turn}"
            messages.append(_said(id_, str(name), at + turn * STEP_S, said))
            told += [id_] if said.get("has_answer") else []
    asked_at = _moment(row.get("question_date", ""), messages)
    absent = str(row.get("question_id", "")).endswith("_abs")
    asked = TalkQuestion(
        str(row.get("question_id", n)),
        str(row["question"]),
        str(row.get("question_type", "")),
        "" if absent else str(row.get("answer", "")),
        at=asked_at,
        evidence=frozenset() if absent else frozenset(told or map(str, row.get("answer_session_ids") or ())),
    )
    ordered = sorted(messages, key=lambda each: each.at)
    return AskedTalk(asked.id, tuple(ordered), (asked,))


def _beam(row: Mapping[str, Any], n: int) -> AskedTalk:
    messages, chat = list[TalkMessage](), _literal(row["chat"])
    for number, batch in enumerate(chat):
        turns = list(_turns(batch))
        anchor = batch.get("time_anchor") if isinstance(batch, dict) else None
        anchor = anchor or next((each["time_anchor"] for each in turns if each.get("time_anchor")), "")
        at = _moment(str(anchor), messages)
        for place, said in enumerate(turns):
            messages.append(_said(str(said.get("id", len(messages))), f"part {number}", at + place * STEP_S, said))
    questions = []
    for kind, several in _literal(row["probing_questions"]).items():
        for place, asked in enumerate(several, 1):
            names = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
            expected = next((str(asked[name]) for name in names if asked.get(name)), "")
            evidence = frozenset(_ids(asked.get("source_chat_ids"))) & {each.id for each in messages}
            points = asked.get("rubric") if isinstance(asked.get("rubric"), list) else []
            questions.append(
                TalkQuestion(
                    f"{kind} {place}", str(asked["question"]), kind, expected, tuple(map(str, points)), evidence
                )
            )
    return AskedTalk(str(row.get("conversation_id", n)), tuple(messages), tuple(questions))


def _turns(batch: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the turns of a part of a chat, however they are nested."""
    if isinstance(batch, Mapping):
        if "content" in batch:
            yield batch
        else:
            yield from _turns(batch["turns"])
        return
    for each in batch:
        yield from _turns(each)


def _literal(value: Any) -> Any:
    """Parse a text as JSON or as a Python literal; return any other value unchanged."""
    if not isinstance(value, str):
        return value
    with suppress(ValueError):
        return json.loads(value)
    return ast.literal_eval(value)


def _ids(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _ids(each)
    elif value is not None:
        yield str(value)


def _said(id_: str, session: str, at: Moment, said: Mapping[str, Any]) -> TalkMessage:
    role = str(said.get("role", "user"))
    return TalkMessage(id_, session, at, role, str(said["content"]), role == "user")


def _moment(text: str, before: Sequence[TalkMessage]) -> Moment:
    """Parse a date. If the format is unknown, return a time after the last earlier message, or 0 without one."""
    for form in DATES:
        with suppress(ValueError):
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC).timestamp()
    return before[-1].at + 60 * STEP_S if before else 0.0


def draw(talks: Sequence[AskedTalk], wanted: Sequence[tuple[str, str]]) -> list[AskedTalk]:
    """Return the conversations with only their wanted questions; conversations without any are left out.

    Args:
        wanted: pairs of a conversation's id and a question's id.
    """
    named = set(wanted)
    kept = (
        replace(talk, questions=tuple(each for each in talk.questions if (talk.id, each.id) in named)) for talk in talks
    )
    return [talk for talk in kept if talk.questions]
