"""Tools that search a pack: steps of its library, and resources."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mindstream.coach.belief.plan import NamedResource
from mindstream.coach.packs.pack import Pack, Resource, Step, in_language, topics_in
from mindstream.models.embedders.wordllama import vectors
from mindstream.text.words import Language, terms
from mindstream.tools.tool import FunctionTool, tool

T = TypeVar("T")
STEPS, RESOURCES = 4, 4
"""Maximum number of results."""
LIKE, ENOUGH, LEAST = 0.6, 0.45, 0.15
"""Weight of similarity in meaning, in addition to common topics and words; minimum score of a result; minimum score of
a result if no better one exists."""


def find_in(pack: Pack, query: str, language: Language, count: int, kinds: tuple[str, ...] = ()) -> list[NamedResource]:
    """Return the best resources for a query, of these kinds, in the user's language or the pack's first language."""
    topics, asked, alike = _asked(pack, query, "resources")
    understood = {language, pack.languages[0]}

    def fit(at: int, resource: Resource) -> float:
        about = len(topics & set(resource.topics)) * (1.0 + 0.5 / len(resource.topics))
        found = about + _shared(asked, _words(resource)) + LIKE * max(0.0, alike[at])
        return found + (OWN if found > ENOUGH and resource.language == language else 0.0)

    ranked = sorted(((fit(n, r), -n, r) for n, r in enumerate(pack.resources)), reverse=True)
    fitting = [
        (score, resource)
        for score, _, resource in ranked
        if resource.language in understood
        if not kinds or resource.kind in kinds
    ]
    return [
        NamedResource(
            title=r.title, publisher=r.publisher, link=r.link, why=in_language(r.why, language), language=r.language
        )
        for r in _found(fitting)[:count]
    ]


def _found(ranked: Sequence[tuple[float, T]]) -> list[T]:
    """Return the results above the minimum score; if there are none, the near ones."""
    return [item for score, item in ranked if score > ENOUGH] or [item for score, item in ranked if score > LEAST]


OWN = 1.0
"""Bonus of a resource in the user's own language."""


def _asked(pack: Pack, query: str, of: str) -> tuple[set[str], set[str], list[float]]:
    """Return a query's topics, its terms, and its similarity to each step or resource of the pack."""
    topics = set(topics_in(pack, query)) | {topic.id for topic in pack.topics if topic.id in query.split()}

    def embedded() -> NDArray[np.float32]:
        texts = [_words(each) for each in (pack.steps if of == "steps" else pack.resources)]
        return vectors(texts)

    return topics, set(terms(query)), (pack.cached(("vectors", of), embedded) @ vectors([query])[0]).tolist()


def _words(item: Step | Resource) -> str:
    """Return the text of a step or resource for comparison, in English if available."""
    about = " ".join(item.topics).replace("_", " ")
    if isinstance(item, Step):
        return f"{in_language(item.title, 'en')}. {in_language(item.do, 'en')} {about}"
    return f"{item.title}. {in_language(item.why, 'en')} {about} {item.kind}"


def _shared(asked: set[str], words: str) -> float:
    return len(asked & set(terms(words))) / (len(asked) or 1)


def steps_in(
    pack: Pack, query: str, language: Language, count: int, besides: Sequence[str] = ()
) -> list[dict[str, str]]:
    """Return the library's steps for a query as text fields, with the users they are for and not for."""
    topics, asked, alike = _asked(pack, query, "steps")

    def fit(at: int, step: Step) -> float:
        about = len(topics & set(step.topics)) / math.sqrt(len(step.topics))
        own = f"{in_language(step.title, language)} {in_language(step.do, language)}"
        return about + _shared(asked, f"{own} {_words(step)}") + LIKE * max(0.0, alike[at])

    left_out = {title.casefold() for title in besides}
    ranked = sorted(
        (
            (fit(at, step), -at, step)
            for at, step in enumerate(pack.steps)
            if in_language(step.title, language).casefold() not in left_out
        ),
        reverse=True,
    )
    return [_told(pack, step, language) for step in _found([(score, step) for score, _, step in ranked])[:count]]


def _told(pack: Pack, step: Step, language: Language) -> dict[str, str]:
    """Return a step's texts, and its intended users if they are restricted."""
    texts = {name: in_language(getattr(step, name), language) for name in ("title", "do", "why", "caution")}
    whom = {"only_for": pack.only_for(step), "not_for": step.not_for}
    named = {
        key: ", ".join(in_language(topic.name, language) for topic in pack.topics if topic.id in ids)
        for key, ids in whom.items()
        if ids
    }
    return {"id": step.id, **texts, "evidence": step.evidence, **named}


def step_tool(pack: Pack, language: Language, planned: Sequence[str]) -> FunctionTool:
    """Return the tool `find_steps` of a pack, without planned or refused steps."""

    def find_steps(query: str) -> list[dict[str, str]]:
        """How steps on a trouble are done, how well they are supported, whom they are not for."""
        return steps_in(pack, query, language, STEPS, planned)

    return tool(find_steps)


def resource_tool(pack: Pack, language: Language) -> FunctionTool:
    """Return the tool `find_resources` of a pack."""

    def find_resources(query: str) -> list[dict[str, str | None]]:
        """Something to read, watch or hear, where they ask for it; name no other titles."""
        found = find_in(pack, query, language, RESOURCES)
        return [resource.model_dump() for resource in found]

    return tool(find_resources)
