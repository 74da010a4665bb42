"""The tools that search a pack: steps of its plan library, and what to read, watch, listen to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mindstream.language.words import terms
from mindstream.packs.pack import Language, Pack, Resource, Step, in_language
from mindstream.packs.reading import read
from mindstream.reasoners.belief.plan import NamedResource
from mindstream.tools.tool import FunctionTool, tool


def find_in(
    pack: Pack, query: str, language: Language, count: int, besides: tuple[str, ...] = ()
) -> list[NamedResource]:
    """Return the resources that fit a query best, titles in `besides` left out; at least topic or words must fit."""
    topics = set(read(pack, query).topics) | {topic.id for topic in pack.topics if topic.id in query.split()}
    asked = set(terms(query))

    def fit(resource: Resource) -> float:
        words = set(terms(f"{resource.title} {in_language(resource.why, 'en')} {' '.join(resource.topics)}"))
        same = len(asked & words) / (len(asked) or 1)
        about = len(topics & set(resource.topics)) * (1.0 + 0.5 / len(resource.topics))
        return about + same + (1.0 if resource.language == language and (about or same) else 0.0)

    ranked = sorted(((fit(r), -n, r) for n, r in enumerate(pack.resources) if r.title not in besides), reverse=True)
    return [
        NamedResource(
            title=r.title, publisher=r.publisher, link=r.link, why=in_language(r.why, language), language=r.language
        )
        for score, _, r in ranked[:count]
        if score > 0.15
    ]


def steps_in(
    pack: Pack, query: str, language: Language, count: int, known: set[str], besides: Sequence[str]
) -> list[dict[str, str]]:
    """Return the library's steps that fit a query and a user of whom these topics are known, as words."""
    topics = set(read(pack, query).topics)
    asked = set(terms(query))

    def fit(step: Step) -> float:
        words = set(
            terms(f"{in_language(step.title, language)} {in_language(step.do, language)} {' '.join(step.topics)}")
        )
        return len(topics & set(step.topics)) / math.sqrt(len(step.topics)) + len(asked & words) / (len(asked) or 1)

    left_out = {title.casefold() for title in besides}
    suiting = [
        step
        for step in pack.steps
        if pack.suits(step, known | topics) and in_language(step.title, language).casefold() not in left_out
    ]
    ranked = sorted(((fit(step), -n, step) for n, step in enumerate(suiting)), reverse=True)
    return [
        {
            "title": in_language(step.title, language),
            "do": in_language(step.do, language),
            "why": in_language(step.why, language),
            "evidence": step.evidence,
            "caution": in_language(step.caution, language),
        }
        for score, _, step in ranked[:count]
        if score > 0.15
    ]


def step_tool(pack: Pack, language: Language, known: set[str], refused: Sequence[str]) -> FunctionTool:
    """Make the tool `find_steps` for a pack and a user: what does not suit them, or was refused, is not found."""

    def find_steps(query: str, count: int = 4, besides: list[str] | None = None) -> list[dict[str, str]]:
        """Find steps in the coach's plan library that suit this user: what to do, why, evidence, caution.

        query: a few words on the trouble and on what the user wants, not on what they do not want.
        count: how many, 1 to 8. besides: titles to leave out.
        """
        return steps_in(pack, query, language, max(1, min(count, 8)), known, [*refused, *(besides or ())])

    return tool(find_steps)


def resource_tool(pack: Pack, language: Language) -> FunctionTool:
    """Make the tool `find_resources` for a pack."""

    def find_resources(query: str, count: int = 3, besides: list[str] | None = None) -> list[dict[str, str | None]]:
        """Find public resources (articles, videos, books, apps) in the coach's collection.

        query: a few words on what they should be about. count: how many, 1 to 6. besides: titles to leave out.
        Gives title, publisher, link (null: none is known; say nothing of it then) and why.
        """
        found = find_in(pack, query, language, max(1, min(count, 6)), tuple(besides or ()))
        return [resource.model_dump() for resource in found]

    return tool(find_resources)
