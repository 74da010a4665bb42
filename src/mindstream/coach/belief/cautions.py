"""A step that is made from the pack's library keeps its caution, whoever rewrote it, and is not told without it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set

from mindstream.coach.belief.library import library_steps
from mindstream.coach.belief.plan import OPEN, Plan, PlanStep
from mindstream.coach.packs.pack import Pack, Step, Texts, choices, in_language
from mindstream.coach.packs.saying import phrases
from mindstream.text.language import Language, language_of
from mindstream.text.support import Support
from mindstream.text.words import terms

TELLS = 0.2
"""Words that hold so much of a step's own words tell it."""
PART = re.compile(r"(?<!\d)[,.;:!?，。；：！？、]|\b(?:and|or|but)\b|[或和及]")
SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


def keep_cautions(pack: Pack, before: Plan, plan: Plan, offered: Set[str] = frozenset()) -> Plan:
    """Return a plan in which every step that comes from the library has the library's caution, in its own words.

    It comes from it by its id, or, where it is new or changed, by what it says; `offered`: what the search gave.
    """
    known = {step.title: step for step in before.steps}
    sources = [_sources(pack, step, step != known.get(step.title), offered) for step in plan.steps]
    return Plan(steps=[_with_caution(pack, step, each) for step, each in zip(plan.steps, sources, strict=True)])


def _with_caution(pack: Pack, step: PlanStep, sources: list[Step]) -> PlanStep:
    language = language_of(f"{step.title} {step.do}", pack.languages)
    missing = [
        in_language(source.caution, language)
        for source in sources
        if source.caution and not any(each in step.caution for each in _all_languages(source.caution))
    ]
    own = "" if _covers(missing, step.caution) else step.caution
    caution = _join([*missing, own], language) if missing else step.caution
    source = step.source if any(step.source == each.id for each in pack.steps) else sources[0].id if sources else ""
    return step.model_copy(update={"caution": caution, "source": source})


def _sources(pack: Pack, step: PlanStep, changed: bool, offered: Set[str]) -> list[Step]:
    """Return the steps of the library that a step was made from: the one it names, unless it says something else."""
    named = [each for each in pack.steps if each.id == step.source]
    alike = library_steps(pack, f"{step.title}. {step.do}", offered) if changed else []
    return named if not alike or any(each in alike for each in named) else [*named, *alike]


def say_cautions(pack: Pack, plan: Plan, words: str, said: Iterable[str], language: Language) -> str:
    """Return words to the user with the cautions of the steps that they tell, where neither they nor others said them.

    What is put in other words has been said where something of each of its parts is there; else it is said whole.
    """
    lines = [words, *said]
    held = {step.source: step for step in plan.steps if step.state in OPEN and not step.told and tells(words, step)}
    cautions = [in_language(step.caution, language) for step in pack.steps if step.id in held]
    sentences = [each for caution in cautions for each in SENTENCE.split(caution) if each]
    missing = [each for each in sentences if not any(_covers([line], each) for line in lines)]
    if not missing:
        return words
    phrase = next(iter(phrases(pack, "step_caution", language)), "{caution}")
    return f"{words.rstrip()}\n{phrase.format(caution=_join(missing, language))}"


def tells(words: str, step: PlanStep) -> bool:
    """Tell whether words to the user tell a step: by its title, or by enough of what is to be done."""
    wanted, said = set(terms(f"{step.title} {step.do}")), set(terms(words))
    return step.title.casefold() in words.casefold() or len(wanted & said) >= TELLS * (len(wanted) or 1)


def _covers(texts: Iterable[str], wanted: str) -> bool:
    """Tell whether texts say something of each part of what is wanted, with its numbers."""
    support = Support(texts)
    return all(support.has_most_words(part) for part in PART.split(wanted) if terms(part))


def _all_languages(texts: Texts) -> list[str]:
    return [each for each in texts.values() if each] if isinstance(texts, dict) else choices(texts, "en")


def _join(texts: Iterable[str], language: Language) -> str:
    return ("" if language == "zh" else " ").join(text for text in texts if text)
