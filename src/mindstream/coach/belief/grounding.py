"""Nothing made up is believed or told: what a belief rests on, titles and links of resources, links in words.

What is believed is held to what was said, noted and found (`ground_patch`); the rest to what was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from mindstream.coach.belief.plan import CoachingPlan, NamedResource, StepEdit
from mindstream.coach.packs.pack import Pack, Resource
from mindstream.models.model import Message
from mindstream.text.links import bare, links, without_links
from mindstream.text.support import Support

SHOWN = 400
"""How much of what was made up is named, in characters."""


@dataclass(frozen=True)
class Given:
    """What a thought may name.

    Attributes:
        links: those that the pack, the plan as it was, and tools gave: a resource may have them.
        said: these, and those that stand in what was said and noted: they may be said again.
        titles: of resources of the pack and the plan.
        results: what tools gave, as one text.
    """

    links: frozenset[str]
    said: frozenset[str]
    titles: frozenset[str]
    results: str

    def has_title(self, title: str) -> bool:
        """Tell whether somebody gave a resource of this title; its spelling does not count."""
        plain = _letters(title)
        return bool(plain) and (plain in self.titles or plain in self.results)


@dataclass
class MadeUp:
    """What nothing gave, as it is found."""

    titles: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        named = [f"“{title}”" for title in dict.fromkeys(self.titles)] + list(dict.fromkeys(self.links))
        return ", ".join(named)[:SHOWN]


def gather_given(pack: Pack, plan: CoachingPlan, said: Iterable[str], turns: Sequence[Message]) -> Given:
    """Gather what a thought may name; a link that the model itself put into a call is not given by its echo."""
    known: set[str] = set()
    own: set[str] = set()
    results: list[str] = []
    said = list(said)
    for turn in turns:
        if turn.role == "tool":
            known |= links([turn.text]) - own
            results.append(turn.text)
        elif turn.role == "user":
            said.append(turn.text)
        own |= links(f"{call.tool} {call.arguments}" for call in turn.calls) - known
    packs_links, packs_titles = pack.cached(("given", ""), lambda: _named(pack.resources))
    planned_links, planned_titles = _named(resource for step in plan.steps for resource in step.resources)
    known |= packs_links | planned_links | links(_texts(plan.model_dump(mode="json")))
    titles = packs_titles | planned_titles
    return Given(frozenset(known), links(said) | known, titles, _letters(" ".join(results)))


def _named(resources: Iterable[Resource | NamedResource]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the links and the titles of resources, as they are compared."""
    links_of, titles = set(), set()
    for resource in resources:
        titles.add(_letters(resource.title))
        if resource.link:
            links_of.add(bare(resource.link))
    return frozenset(links_of), frozenset(titles)


def ground_edits(edits: Sequence[StepEdit], known: Given, made_up: MadeUp) -> list[StepEdit]:
    """Return a plan's changes without resources, and links of resources, that nothing gave."""

    def kept(resource: NamedResource) -> NamedResource | None:
        if not known.has_title(resource.title):
            made_up.titles.append(resource.title)
            return None
        if resource.link and bare(resource.link) not in known.links:
            made_up.links.append(bare(resource.link))
            return resource.model_copy(update={"link": None})
        return resource

    return [
        edit.model_copy(update={"resources": [each for resource in edit.resources if (each := kept(resource))]})
        for edit in edits
    ]


def drop_made_up_links(value: Any, known: Given, made_up: MadeUp) -> Any:
    """Return a value without the links in its texts that nobody gave or said."""
    if isinstance(value, str):
        text, gone = without_links(value, known.said)
        made_up.links += gone
        return text
    if isinstance(value, list):
        return [drop_made_up_links(item, known, made_up) for item in value]
    if isinstance(value, dict):
        return {key: drop_made_up_links(item, known, made_up) for key, item in value.items()}
    return value


def ground_patch(
    patch: Mapping[str, JsonValue], rests_on: str, support: Support
) -> tuple[dict[str, JsonValue], list[str]]:
    """Return what of a patch rests on something, and what does not, as `field: text`.

    Where the words that it names were said, all of it does; else each text whose own words were said.
    """
    if support.has_quotation(rests_on):
        return dict(patch), []
    gone: list[str] = []

    def kept(name: str, value: JsonValue) -> bool:
        if support.has_most_words(f"{value:g}" if isinstance(value, float) else str(value)):
            return True
        gone.append(f"{name}: {value}")
        return False

    left: dict[str, JsonValue] = {}
    for name, value in patch.items():
        if value is None or name == "phase":
            left[name] = value
        elif isinstance(value, dict):
            added = value.get("add")
            items = added if isinstance(added, list) else [] if added is None else [added]
            left[name] = {**value, "add": [item for item in items if kept(name, item)]}
        elif isinstance(value, list):
            left[name] = [item for item in value if kept(name, item)]
        elif kept(name, value):
            left[name] = value
    return left, gone


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _letters(text: str) -> str:
    """Return what counts in comparing titles; in a prompt `<` is written `&lt;`."""
    return re.sub(r"[\W_]+", "", text.casefold().replace("&lt;", ""))
