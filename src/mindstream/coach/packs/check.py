"""Report weaknesses of a pack that its schema allows, and create a new pack from the example pack.

Errors in a pack raise PackError when it is loaded.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from mindstream.coach.packs.load import SHIPPED, phrase_names, phrases
from mindstream.coach.packs.pack import Lists, Pack, Texts
from mindstream.coach.packs.safety import find_alarm, find_hint
from mindstream.errors import InputError
from mindstream.text.pattern import pattern
from mindstream.text.words import terms

EXAMPLE_TITLE = "Tea coach (example)"
"""Title of the pack that `new` copies."""


def thin_spots(pack: Pack) -> list[str]:
    """Return messages about the weaknesses of a valid pack."""
    return [
        *_example(pack),
        *_phases(pack),
        *_topics(pack),
        *_steps(pack),
        *_phrases(pack),
        *_alarms(pack),
        *_harmless(pack),
    ]


def new(folder: Path) -> Path:
    """Write the example pack (a coach for tea) into a new folder, under the folder's name.

    Raises:
        InputError: the folder exists, or its name cannot be a pack's name.
    """
    if folder.exists():
        raise InputError(f"{folder} exists already; choose a folder that does not exist")
    name = re.sub(r"[^a-z0-9_]", "_", folder.name.lower()).lstrip("_0123456789")
    if not name:
        raise InputError(f"{folder.name!r} cannot be the name of a pack; the folder's name needs a letter (a-z)")
    shutil.copytree(SHIPPED / "_new", folder)
    pack = folder / "pack.yaml"
    pack.write_text(re.sub(r"^name: \w+", f"name: {name}", pack.read_text("utf-8")), "utf-8")
    return folder


def _example(pack: Pack) -> Iterator[str]:
    if pack.title == EXAMPLE_TITLE:
        yield f"the title is still {EXAMPLE_TITLE!r}: replace the example's texts with those of your subject"


def _phases(pack: Pack) -> Iterator[str]:
    if not any(phase.plans for phase in pack.phases):
        yield "no phase has `plans: true`: the mind will never make a plan"
    elif not pack.phases[0].needs:
        yield f"the first phase, {pack.phases[0].name!r}, needs nothing: a plan will be made before anything is known"
    for name, field in pack.fields.items():
        if any(name in phase.needs for phase in pack.phases) and not field.ask:
            yield f"field {name!r} is needed, but has no questions (`ask`)"


def _topics(pack: Pack) -> Iterator[str]:
    for language in pack.languages:
        shown: defaultdict[str, list[str]] = defaultdict(list)
        for topic in pack.topics:
            words = topic.words.get(language, []) if isinstance(topic.words, dict) else topic.words
            if not words:
                yield f"topic {topic.id!r} has no words in {language!r}"
            for word in {word.lower() for word in words}:
                shown[word].append(topic.id)
                if len(word.split()) > 1 and len(set(terms(word))) < 2:  # "sleep in" would match any "sleep"
                    yield f"topic {topic.id!r}: of {word!r} only {terms(word)} counts"
        for word, topics in shown.items():
            if len(topics) > 1:
                yield f"the word {word!r} names several topics: {', '.join(topics)}"
    for topic in pack.topics:
        yield from _missing(pack, f"topic {topic.id!r}", "acknowledge", topic.acknowledge)


def _steps(pack: Pack) -> Iterator[str]:
    for step in pack.steps:
        near = [resource for resource in pack.resources if set(resource.topics) & set(step.topics)]
        if len(near) < 2:
            yield f"step {step.id!r} has {len(near)} resources on its topics; two are wanted"
        for what, texts in (("title", step.title), ("do", step.do), ("why", step.why)):
            yield from _missing(pack, f"step {step.id!r}", what, texts)
    if any(phase.plans for phase in pack.phases) and not pack.steps:
        yield "there is a planning phase, but no steps.yaml: without a model no plan can be made"


def _phrases(pack: Pack) -> Iterator[str]:
    for name in pack.phrases:
        if name not in phrase_names():
            yield f"phrases: unknown phrase {name!r}; there are {', '.join(phrase_names())}"
    for language in pack.languages:
        for name in phrase_names():
            if not phrases(pack, name, language):
                yield f"phrases: nothing to say for {name!r} in {language!r}"


def _alarms(pack: Pack) -> Iterator[str]:
    if not pack.alarms:
        yield "no safety.yaml: nothing is recognised before the talker speaks"
    for alarm in pack.alarms:
        for language in pack.languages:
            if not any(said.get(language) for said in (alarm.patterns, alarm.together, alarm.hints)):
                yield f"alarm {alarm.id!r} has no patterns in {language!r}"
        if alarm.hints or (alarm.recogniser and alarm.stops):
            yield from _missing(pack, f"alarm {alarm.id!r}", "hint_ask", alarm.hint_ask)
        for source in alarm.sources():
            if pattern(source).is_always_searched:
                yield f"alarm {alarm.id!r}: {source!r} may match nothing but its look-arounds: it slows every search"


def _harmless(pack: Pack) -> Iterator[str]:
    """Report each alarm that fires, or hears a hint, in one of the pack's harmless sentences. If the pack has alarms
    and no such sentences, report that."""
    if pack.alarms and not pack.harmless:
        yield "no harmless.txt: list in it common sentences of the pack's users, on which no alarm may fire"
    for sentence in pack.harmless:
        alarm, hint = find_alarm(pack, sentence), find_hint(pack, sentence)
        if alarm:
            yield f"alarm {alarm.id!r} {'stops the talk' if alarm.stops else 'fires'} on the harmless {sentence!r}"
        if hint:
            yield f"alarm {hint.alarm.id!r} hears a hint (by its {hint.basis}) in the harmless {sentence!r}"


def _missing(pack: Pack, where: str, what: str, texts: Lists | Texts) -> Iterator[str]:
    if not texts:
        yield f"{where} has no {what!r}"
    elif isinstance(texts, dict):
        for language in pack.languages:
            if not texts.get(language):
                yield f"{where} has no {what!r} in {language!r}"
