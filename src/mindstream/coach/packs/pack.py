"""The schema of a pack: the data that specialises a coach in a domain, such as sleep or language learning.

A pack is a folder of YAML files: `pack.yaml` (required), `topics.yaml`, `steps.yaml`, `resources.yaml`, `phrases.yaml`,
`safety.yaml`. Text in several languages is a mapping from language code to text; a plain text is in the first language
of the pack.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Set
from datetime import tzinfo
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from mindstream.clock import read_zone
from mindstream.errors import InputError
from mindstream.text.pattern import pattern as read_pattern
from mindstream.text.words import CJK, Language, both_ends, count_of, simplify, terms

Where = tuple[str | int, ...]
Fault = tuple[Where, str]
"""A place in a pack, and a message about the fault there."""


def dangling(pack: Pack) -> Iterator[Fault]:
    """Yield a fault for each reference to a field or topic that does not exist."""
    fields, topics = set(pack.fields), {topic.id for topic in pack.topics}
    for at, phase in enumerate(pack.phases):
        yield from _missing(("phases", at, "fields"), phase.fields, fields, "the field", "`fields`")
        yield from _missing(("phases", at, "needs"), phase.needs, fields, "the field", "`fields`")
    for at, topic in enumerate(pack.topics):
        yield from _missing(("topics", at, "field"), (topic.field,), fields | {""}, "the field", "`fields`")
    for at, step in enumerate(pack.steps):
        yield from _missing(("steps", at, "topics"), step.topics, topics, "the topic", "topics.yaml")
        yield from _missing(("steps", at, "not_for"), step.not_for, topics, "the topic", "topics.yaml")
    for at, resource in enumerate(pack.resources):
        yield from _missing(("resources", at, "topics"), resource.topics, topics, "the topic", "topics.yaml")


def _missing(where: Where, named: tuple[str, ...], known: set[str], what: str, of: str) -> Iterator[Fault]:
    for name in named:
        if name not in known:
            yield where, f"names {what} {name!r}, which {of} does not have{suggest(name, known)}"


def suggest(name: str, known: set[str]) -> str:
    """Return a suggestion of the intended name, for the end of a message; "" if none is similar."""
    near = difflib.get_close_matches(name, sorted(map(str, known)), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


T = TypeVar("T")
MOST_SIZE = 150_000
"""Maximum total size of a pack's alarm patterns, in steps of the matcher (text/pattern.py). The sleep pack uses a tenth
of this."""


class PackPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Texts: TypeAlias = dict[Language, str] | str
"""One text, in one or several languages."""
Lists: TypeAlias = dict[Language, list[str]] | list[str]
"""Several texts to choose from, in one or several languages."""


def _identifier(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"{name!r} should be a name of lower-case letters, digits and _ that begins with a letter")
    return name


def _pattern(pattern: str) -> str:
    read_pattern(pattern)
    return pattern


def _groups(groups: list[str]) -> list[str]:
    if any(not cue.strip() for group in groups for cue in group.removeprefix("-").split("|")):
        raise ValueError(
            "holds a group with an empty cue; write groups such as [fall asleep|doze, wheel|driving, -taxi]"
        )
    if all(group.startswith("-") for group in groups):
        raise ValueError(
            "has no group of cues that must occur (- excludes cues); write groups such as [fall asleep|doze,"
            " wheel|driving, -taxi]"
        )
    return groups


Identifier: TypeAlias = Annotated[str, AfterValidator(_identifier)]
Pattern: TypeAlias = Annotated[str, AfterValidator(_pattern)]
Groups: TypeAlias = Annotated[list[str], AfterValidator(_groups)]


class Field_(PackPart):  # noqa: N801 (Field is Pydantic's)
    """A field of the belief: something that the reasoner tries to learn about the user."""

    about: str
    type: Literal["text", "list", "number", "yes_no", "zone"] = "text"
    of: tuple[str, ...] = ()
    """For text and list: the allowed values; empty: any text."""
    audience: bool = False
    """Whether the field's topics describe who the user is (a parent, a shift worker). Steps on these topics are only
    for such users."""
    always: bool = False
    """Whether the talker sees all items of this list, such as all refusals. False: it sees only the newest items."""
    ask: Lists = []
    """Questions about the field, used without a language model."""


class Phase(PackPart):
    """A phase of the conversation, with instructions for the talker and a chain of thought for the reasoner."""

    name: Identifier
    goal: str
    """The purpose of the phase, and when the phase is over."""
    instructions: str
    """Instructions for the talker in this phase."""
    thinking: str
    """The chain of thought that the reasoner follows in this phase."""
    fields: tuple[str, ...]
    """The belief fields that the reasoner fills in this phase."""
    needs: tuple[str, ...] = ()
    """Fields that must be known before the next phase begins (unless the user asks for a plan)."""
    plans: bool = False
    """Whether the reasoner makes the plan in this phase."""
    waits: bool = False
    """Whether the talker waits for the reasoner in this phase, if the gate `belief` decides."""


class Topic(PackPart):
    """A subject that a user may mention, recognised by plain words."""

    id: str
    name: Texts
    """The topic's name as it is used in a sentence: 'noise', 'waking in the night'."""
    words: Lists
    """Plain words for the topic (a dozen suffice), compared by stem. An entry of several words matches only if all
    occur."""
    field: str = ""
    """The belief field in which the topic is noted; "": it is not noted."""
    acknowledge: Lists = []
    """Replies without a language model. They show understanding, and contain no advice and no fact about the user."""


class Step(PackPart):
    """A step of the plan library, from which the reasoner takes steps for a user's plan."""

    id: str
    title: Texts
    do: Texts
    why: Texts
    evidence: Literal["strong", "moderate", "limited", "comfort"]
    """How well studies support the step; comfort: harmless and pleasant, but hardly studied."""
    topics: tuple[str, ...]
    caution: Texts = ""
    not_for: tuple[str, ...] = ()
    """Topics (a newborn, shift work, …). The step is not suitable for a user who has named one of these topics."""


class Resource(PackPart):
    """Something to read, watch, listen to or call. Title and publisher must be real, and a link is given only if it is
    certain."""

    title: str
    publisher: str
    kind: Literal[
        "article", "leaflet", "video", "playlist", "audio", "book", "app", "course", "helpline", "tool", "guideline"
    ]
    topics: tuple[str, ...]
    why: Texts
    """The content and the audience of the resource, in a sentence."""
    link: str | None = None
    language: Language = "en"


class Alarm(PackPart):
    """A danger that code must detect before any answer, and the answer to it."""

    id: str
    patterns: dict[Language, list[Pattern]] = {}
    """Regular expressions, case-insensitive, for words that are certain to mean this danger."""
    together: dict[Language, list[Groups]] = {}
    """Words that are certain to mean this danger if they are near each other, in any order:
    `[doze|nod off, wheel|driving]`."""
    recogniser: Literal["danger"] | None = None
    """A classifier that detects danger to life in other words; its result is a hint, never certain."""
    hints: dict[Language, list[Pattern]] = {}
    """Regular expressions for words that may mean this danger."""
    hint_ask: Texts = ""
    """The careful question after a hint; if the user answers yes, the alarm is certain."""
    unless: dict[Language, list[Pattern]] = {}
    """Regular expressions for harmless phrases that the patterns would match; they are removed from the text before the
    search."""
    say: Texts
    stops: bool = True
    """Whether the alarm's words are the whole answer. False: they precede the ordinary answer."""
    danger: bool = False
    """Whether the alarm is about danger to life. After such an alarm, answers without a model give no other advice. An
    alarm with a recogniser counts as danger in any case."""

    @property
    def is_danger(self) -> bool:
        """Whether the alarm is about danger to life."""
        return self.danger or self.recogniser is not None

    def sources(self) -> Iterator[str]:
        """Yield all regular expressions of the alarm."""
        for by_language in (self.patterns, self.hints, self.unless):
            for sources in by_language.values():
                yield from sources


class Pack(PackPart):
    """A domain: constitution, phases, belief fields, topics, plan library, resources, phrases, safety."""

    name: Identifier
    title: str
    languages: tuple[Language, ...] = ("en",)
    constitution: str
    """Rules that the talker always follows."""
    principles: str = ""
    """Methods that work, with their contraindications; the reasoner adapts them to the user."""
    phases: tuple[Phase, ...] = Field(min_length=1)
    fields: dict[Identifier, Field_]
    topics: tuple[Topic, ...] = ()
    steps: tuple[Step, ...] = ()
    resources: tuple[Resource, ...] = ()
    phrases: dict[str, Lists] = {}
    """Fixed texts of the coach by name (see docs/packs.md), such as filler phrases, excuses, and answers without a
    language model. A name here replaces the shipped phrases of that name."""
    reasoners: tuple[Literal["reflect", "sleep"], ...] = ()
    """Reasoners in addition to the belief reasoner: `reflect` derives insights, `sleep` tidies an idle mind's
    memory."""
    alarms: tuple[Alarm, ...] = ()
    harmless: tuple[str, ...] = ()
    """Common sentences that must raise no alarm (harmless.txt); `mindstream pack check` tests them."""

    def model_post_init(self, _: Any, /) -> None:
        """Check the total size of the alarm patterns. A validator would run again for every prompt with the pack."""
        if (size := sum(read_pattern(source).size for alarm in self.alarms for source in alarm.sources())) > MOST_SIZE:
            raise ValueError(
                f"the patterns of the alarms need {size:,} matching steps per character of a message, and at most"
                f" {MOST_SIZE:,} are allowed: write fewer or shorter patterns"
            )

    def count_parts(self) -> str:
        """Return the numbers of the pack's parts as text: "4 phases, 1 topic, …"."""
        parts = {"phase": self.phases, "topic": self.topics, "step": self.steps, "resource": self.resources}
        return ", ".join(count_of(len(held), noun) for noun, held in parts.items())

    def phase(self, name: str) -> Phase:
        """Return the phase of this name; the first phase if there is none."""
        return next((phase for phase in self.phases if phase.name == name), self.phases[0])

    def topic(self, id_: str) -> Topic | None:
        """Return the topic with this id; None if there is none."""
        return self._topics.get(id_)

    def suits(self, step: Step, known: Set[str]) -> bool:
        """Return whether a step is suitable for a user with these known topics (ids)."""
        only_for = self.only_for(step)
        return not known & set(step.not_for) and (not only_for or bool(only_for & known))

    def only_for(self, step: Step) -> set[str]:
        """Return the topics that restrict a step: the step is only for users with one of these topics. Empty: there is
        no such restriction."""
        topics = map(self.topic, step.topics)
        return {topic.id for topic in topics if topic and topic.field and self.fields[topic.field].audience}

    def cached(self, key: tuple[str, str], make: Callable[[], T]) -> T:
        """Return the value that `make` derives from this pack; it is computed once per key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]  # type: ignore[no-any-return]

    @cached_property
    def _made(self) -> dict[tuple[str, str], Any]:
        return {}

    @cached_property
    def _topics(self) -> dict[str, Topic]:
        return {topic.id: topic for topic in self.topics}

    @cached_property
    def belief(self) -> type[BaseModel]:
        """The belief as a Pydantic model: `phase` and the pack's fields, all optional, nothing else allowed."""
        names = tuple(phase.name for phase in self.phases)
        fields: dict[str, Any] = {"phase": (_one_of(names), Field(names[0]))}
        for name, spec in self.fields.items():
            kind = _one_of(spec.of) if spec.of else TYPES.get(spec.type, str)
            if spec.type == "list":
                fields[name] = (list[kind], Field(default_factory=list, description=spec.about))  # type: ignore[valid-type]
            else:
                fields[name] = (kind | None, Field(None, description=spec.about))
        made: type[BaseModel] = create_model(
            f"{self.name.title()}Belief", __config__=ConfigDict(extra="forbid", frozen=True), **fields
        )
        return made


def zone_in(pack: Pack, belief: Mapping[str, Any]) -> tzinfo | None:
    """Return the user's time zone according to the belief; None if it is unknown."""
    said = next((belief.get(name) for name, spec in pack.fields.items() if spec.type == "zone"), None)
    return read_zone(said) if said else None


def _zone(name: str) -> str:
    try:
        read_zone(name)
    except InputError as error:
        raise ValueError(str(error)) from None
    return name


TYPES: dict[str, Any] = {"number": float, "yes_no": bool, "zone": Annotated[str, AfterValidator(_zone)]}


def _one_of(values: tuple[str, ...]) -> Any:
    """Return the type of a text that must be one of these values."""
    return Literal.__getitem__(values)


def choices(texts: Lists | Texts, language: Language) -> list[str]:
    """Return the texts in this language; if there are none, those in the first language. [] if there are no texts."""
    if isinstance(texts, dict):
        texts = texts.get(language) or next(iter(texts.values()), "")  # type: ignore[assignment]
    if isinstance(texts, str):
        return [texts] if texts else []
    return list(texts)


def in_language(texts: Texts, language: Language) -> str:
    """Return the text in this language, otherwise in the first language; "" if there is none."""
    return next(iter(choices(texts, language)), "")


def all_texts(texts: Lists | Texts) -> list[str]:
    """Return the texts of a field of a pack, in all languages."""
    languages = texts if isinstance(texts, dict) else [""]
    return [text for language in languages for text in choices(texts, language)]


def topics_in(pack: Pack, text: str) -> list[str]:
    """Return the ids of the topics that a text names. Of a very long text, only the beginning and the end are read.

    A topic whose words are part of a longer match does not count: "light sleeper" does not name light.
    """
    plain = simplify(both_ends(text)).lower()
    said = frozenset(terms(plain))
    words = pack.cached(("words", ""), lambda: _words_by_part(pack))
    named = sorted(
        (number, topic, parts)
        for key in said.union(plain)
        for number, topic, chinese, parts in words.get(key, ())
        if (chinese in plain if chinese else parts <= said)
    )
    found: dict[str, frozenset[str]] = {}
    for _, topic, parts in named:  # in the pack's order
        if len(parts) > len(found.get(topic, ())):
            found[topic] = parts
    return [topic for topic, parts in found.items() if not any(parts < other for other in found.values())]


def _words_by_part(pack: Pack) -> dict[str, list[tuple[int, str, str, frozenset[str]]]]:
    """Return the words of all topics (see `_words`), numbered, each under one of its parts."""
    found: dict[str, list[tuple[int, str, str, frozenset[str]]]] = {}
    for number, (topic, chinese, parts) in enumerate(_words(pack)):
        found.setdefault(max(parts, key=len), []).append((number, topic, chinese, parts))
    return found


def _words(pack: Pack) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield for each word of each topic: the topic's id; the word itself if it is Chinese, otherwise ""; and the stems
    or Chinese characters of the word."""
    for topic in pack.topics:
        for words in topic.words.values() if isinstance(topic.words, dict) else [topic.words]:
            for word in map(str.lower, map(simplify, words)):
                chinese = word if CJK.search(word) else ""
                if parts := frozenset(chinese or terms(word)):
                    yield topic.id, chinese, parts
