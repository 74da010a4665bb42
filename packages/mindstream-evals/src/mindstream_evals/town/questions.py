"""The interview: 25 questions in five categories, filled in with names and events of the town.

People can edit the files of questions, answers and verdicts.
"""

from __future__ import annotations

import csv
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindstream_town.formats.files import write_text
from mindstream_town.inspect.history import History
from mindstream_town.prompts.conduct import AnswerInterview
from mindstream_town.residents.interview import Interviewer
from mindstream_town.residents.person import Appointment, appointment_of
from mindstream_town.residents.places import with_article, words_of

from mindstream import chance
from mindstream.encodings import csv_text, decode_clear, read_csv
from mindstream.errors import InputError, prefixed
from mindstream.paths import read_bytes, read_text

LARGEST = 16 << 20
"""Maximum size of a file of questions or answers, in bytes."""

FILE = Path(__file__).with_name("questions.toml")
NO_EVENT = "anything that people here come together for"


@dataclass(frozen=True)
class Question:
    """A question; its text may contain the placeholders {other}, {event} and {time}."""

    id: str
    category: str
    text: str

    def fill(self, gaps: dict[str, str]) -> Question:
        """Return the question with its placeholders filled in.

        Raises:
            InputError: the question has an unknown placeholder, or a single brace.
        """
        try:
            return Question(self.id, self.category, self.text.format_map(gaps))
        except (LookupError, ValueError, AttributeError):
            raise InputError(
                f"the question {self.id} has an unknown placeholder, or a brace that belongs to none; the placeholders"
                f" are: {', '.join(gaps)}"
            ) from None


def load_questions(file: Path | None = None) -> tuple[Question, ...]:
    """Return the questions of a file (None: the shipped ones). A category is a TOML table of `id = "question"`.

    Raises:
        InputError: the file cannot be read or has another format.
    """
    with prefixed(file):
        text = read_text(file or FILE, LARGEST)
    try:
        tables = tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"{file} is not valid TOML: {error}") from None
    found = [
        Question(id_, category, text)
        for category, table in tables.items()
        if isinstance(table, dict)
        for id_, text in table.items()
        if isinstance(text, str)
    ]
    if not found or len(found) != len({each.id for each in found}):
        raise InputError(f'{file}: expected tables [category] with entries id = "question", and each id only once')
    return tuple(found)


def draw_questions(questions: Sequence[Question], n: int, seed: int, name: str) -> list[Question]:
    """Draw `n` questions (0: all) for a resident, equally from all categories."""
    categories = dict.fromkeys(each.category for each in questions)
    drawn = {
        category: chance.sample([each for each in questions if each.category == category], len(questions), seed, name)
        for category in categories
    }
    order = chance.sample(list(categories), len(categories), seed, name, "categories")
    rounds = [drawn[category][at] for at in range(len(questions)) for category in order if at < len(drawn[category])]
    kept = set(rounds[: n or len(rounds)])
    return [each for each in questions if each in kept]


def gaps_of(history: History, name: str, event: str) -> dict[str, str]:
    """Return the values of the placeholders in questions to a resident: another resident, an event, and the time.

    If the resident has met or knows others, the other resident is one of these.
    """
    setting, step = history.setting, history.step
    when = setting.when(max(step, 0))
    return {"other": _other(history, name), "event": event, "time": f"{when:%A}, {when:%H:%M}"}


def _other(history: History, name: str) -> str:
    state, people = history.state(name, history.step), history.setting.people
    met = sorted(state.met, key=lambda other: (-state.met[other], other))
    related = [each.name for each in people[name].relations]
    near = [*met, *related, *(other for other in sorted(people) if other != name)]
    return next((other for other in near if other in people and other != name), name)


def find_event(history: History) -> str:
    """Return in words the appointment that most residents know about.

    Of several such appointments, the first found is returned. Without appointments, a general text is returned.
    """
    found: list[Appointment] = []
    known: Counter[int] = Counter()
    for name in history.names:
        told = [each for record in history.records[name] if (each := appointment_of(record.data))]
        for at in {_place_in(found, each) for each in told}:
            known[at] += 1
    if not known:
        return NO_EVENT
    event = found[max(known, key=lambda at: (known[at], -at))]
    where = f" at {with_article(words_of(event.place))}" if event.place in history.setting.addresses else ""
    return f"“{event.what}”{where}"


def _place_in(found: list[Appointment], one: Appointment) -> int:
    """Return the index of an appointment in `found`; an appointment that is not there is added."""
    at = next((at for at, each in enumerate(found) if each.is_same(one)), len(found))
    if at == len(found):
        found.append(one)
    return at


OF_ANSWER = 8
"""Maximum memories that are recalled for an answer, in addition to those recalled for the question."""


@dataclass(frozen=True)
class Item:
    """A question to one resident, with its placeholders filled in."""

    resident: str
    question: Question

    @property
    def key(self) -> tuple[str, str]:
        """The resident's name and the question's id."""
        return self.resident, self.question.id


@dataclass(frozen=True)
class Answer:
    """An answer to an item.

    Attributes:
        condition: the parts of the memory in use, or `person` (a person answered) or `shuffled` (another resident
            answered).
        key: key of the stored answer, derived from the prompt.
    """

    item: Item
    condition: str
    text: str
    key: str


@dataclass(frozen=True)
class Facts:
    """Facts about a resident at one time, one per line."""

    when: str
    lines: tuple[str, ...]


async def gather_facts(interviewer: Interviewer, item: Item, answers: Iterable[str]) -> Facts:
    """Return the facts for judging answers to a question.

    The facts are the content of the interview's prompt, with the memories recalled for the question, and up to
    OF_ANSWER further memories for each answer. The facts do not depend on the order of the answers.
    """
    prompt, found = await interviewer.prepare(item.resident, item.question.text)
    shown = {each.record.id for each in found}
    more: dict[str, str] = {}
    for said in answers:
        if not said.strip():
            continue
        asked, records = await interviewer.prepare(item.resident, said)
        new = [each for each in zip(records, asked.memories, strict=True) if each[0].record.id not in shown]
        more |= {each.record.id: words for each, words in new[:OF_ANSWER]}
    return Facts(prompt.when, (*_lines(prompt), *(f"Remembers: {more[id_]}" for id_ in sorted(more))))


def _lines(prompt: AnswerInterview) -> tuple[str, ...]:
    now = f"Now: {prompt.doing}" + (f", in {prompt.place}" if prompt.place else "") if prompt.doing else ""
    return (
        *prompt.identity.splitlines(),
        *([f"Lives in {prompt.home}."] if prompt.home else []),
        *([now] if now else []),
        *([f"In sight: {', '.join(prompt.near)}"] if prompt.near else []),
        *(f"Was planned for today: {each}" for each in prompt.day[: prompt.begun]),
        *(f"Planned for later today: {each}" for each in prompt.day[prompt.begun :]),
        *([f"Knows these places: {', '.join(prompt.places)}"] if prompt.places else []),
        *(f"Remembers: {each}" for each in prompt.memories if each not in prompt.identity),
    )


WORTH = {"1": 1.0, "2": 0.0, "=": 0.5}
"""Points of the answer shown first, by typed verdict."""


def read_person(file: Path, names: Iterable[str], ids: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return a person's answers by resident and question id, from CSV with a header or a JSON list of objects.

    Empty answers are ignored.

    Raises:
        InputError: the file cannot be read, names an unknown resident or question, or has no answer.
    """
    people, questions = {each.casefold(): each for each in names}, set(ids)
    found: dict[tuple[str, str], str] = {}
    for at, row in enumerate(_rows(file, ("resident", "question", "answer")), 1):
        name, question = people.get(row["resident"].strip().casefold()), row["question"].strip()
        if name is None:
            raise InputError(
                f"{file}, row {at}: unknown resident {row['resident']!r:.99}; use one of: {', '.join(people.values())}"
            )
        if question not in questions:
            raise InputError(
                f"{file}, row {at}: unknown question {question!r:.99}; use: {', '.join(sorted(questions))}"
            )
        if row["answer"].strip():
            found[name, question] = row["answer"].strip()
    if not found:
        raise InputError(f"{file}: no row has an answer; fill in the column `answer`")
    return found


def read_verdicts(files: Iterable[Path]) -> list[tuple[str, float]]:
    """Return people's verdicts: the id of each pair, and the points of its first answer.

    Raises:
        InputError: a file cannot be read, or a verdict is not 1, 2 or =.
    """
    found = []
    for file in files:
        for at, row in enumerate(_rows(file, ("pair", "verdict")), 1):
            verdict = row["verdict"].strip().lstrip("'")
            if verdict not in WORTH:
                raise InputError(f"{file}, row {at}: a verdict is one of {', '.join(WORTH)}, not {verdict!r:.20}")
            found.append((row["pair"].strip(), WORTH[verdict]))
    return found


def write_questions(file: Path, items: Iterable[Item]) -> None:
    """Write the questions as CSV, with an empty column for a person's answers."""
    rows = ((each.resident, each.question.id, each.question.text, "") for each in items)
    write_text(file, csv_text(("resident", "question", "text", "answer"), rows))


def write_answers(file: Path, answers: Iterable[Answer]) -> None:
    """Write all answers as CSV, with resident, question and condition."""
    rows = (
        (
            each.item.resident,
            each.item.question.id,
            each.item.question.category,
            each.condition,
            each.item.question.text,
            each.text,
        )
        for each in answers
    )
    write_text(file, csv_text(("resident", "question", "category", "condition", "text", "answer"), rows))


def _rows(file: Path, wanted: tuple[str, ...]) -> list[Mapping[str, str]]:
    with prefixed(file):
        text = decode_clear(read_bytes(file, LARGEST))
    try:
        rows: Any = json.loads(text) if file.suffix.casefold() == ".json" else read_csv(text)
    except (ValueError, csv.Error) as error:
        raise InputError(f"{file} is not valid CSV or JSON: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{file}: expected a JSON list of objects")
    for at, row in enumerate(rows, 1):
        missing = [name for name in wanted if not isinstance(row.get(name), str)]
        if missing:
            raise InputError(
                f"{file}, row {at}: the field {missing[0]} is missing or not text; expected {', '.join(wanted)}"
            )
    return list(rows)
