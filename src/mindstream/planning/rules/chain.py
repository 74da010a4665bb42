"""Questions after a property of a property: "the hometown of the winner of the Open", 法国的首都的人口."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mindstream.text.dimensions import dimension_of

RELATIVE = re.compile(r"\b(?:where|who|whose|which|that|when|if|than|or|not|and|besides|except|how|why|would|will)\b")
RELATION = r"[a-z]+(?:[ -][a-z]+){0,3}?"
ANY = re.compile(r"\b(?:favou?rite|meaning|reason|purpose|cause|best|worst|opinion|difference|most|least|name)\b")
"""What folders of facts do not state of a thing in so many words."""
MOST_LINKS = 5
OPENING = r"(?:(?:please |can you )?(?:tell me|name|give me|give|find|look up|state) )?"
IS = r"(?: is|['’]s| was| are| were)"
ASKED = r"(?:what|who|which|where|when|in (?:which|what) [a-z]+)(?: [a-z]+)?"
NOUN = re.compile(rf"{OPENING}(?:{ASKED}{IS} )?(?=the )(.+)", re.I)
OWNED = re.compile(rf"(?:what|who|which){IS} (.+['’]s? [a-z ]+)", re.I)
PLACE = r"(where|when|in which (?:year|city|country|place|town|village))"
PASSIVE = re.compile(rf"{PLACE} (?:was|were|is|are) (.+) ([a-z]+(?:ed|n|t|de))", re.I)
ACTIVE = re.compile(rf"{PLACE} (?:did|does|do) (.+?) (grow up|come from|[a-z]+)", re.I)
PEOPLE = re.compile(r"how many (?:people|inhabitants) (?:live in|does|do|are there in) (.+?)(?: have)?", re.I)
ZH_ASKED = r"(?:是|在|叫|有)?(?:什么|谁|哪里|哪儿|哪个城市|哪一年|多少|几)"


@dataclass(frozen=True, slots=True)
class Chain:
    """A thing, and what is asked of it: the first relation is the thing's, each other that of what was found before."""

    thing: str
    relations: tuple[str, ...]

    def of(self, relation: str) -> Chain:
        """Return the chain with one relation more."""
        return Chain(self.thing, (*self.relations, relation))


def read_chain(words: str) -> Chain | None:
    """Read "the X of the Y of Z", "Z's X", or a thing alone; None where it is more than that."""
    words = re.sub(r"^(?:the|a|an) (?=[a-z])", "", words.strip(" ?.!"))
    if own := re.fullmatch(rf"(.+)['’]s? ({RELATION})", words):
        inner = read_chain(own[1])
        return inner.of(own[2]) if inner and not RELATIVE.search(own[2]) else None
    if of := re.match(rf"({RELATION}) (?:of|in) (?=.)", words):
        inner = read_chain(words[of.end() :])
        return inner.of(of[1]) if inner and not RELATIVE.search(of[1]) and not ANY.search(of[1]) else None
    is_thing = words and len(words) <= 80 and not RELATIVE.search(words) and len(words.split()) <= 8
    return Chain(words, ()) if is_thing else None


def read_question(task: str) -> Chain | None:
    """Return what a question asks for as a chain; None where it is no such question."""
    text = " ".join(task.split()).strip(" ?.!？。")
    for form in (_of_verb, _of_measure, _of_noun, _of_chinese):
        chain = form(text)
        if chain and 0 < len(chain.relations) <= MOST_LINKS:
            return chain
    return None


def _of_noun(text: str) -> Chain | None:
    found = NOUN.fullmatch(text) or OWNED.fullmatch(text)
    return read_chain(_lower_first(found[1])) if found else None


def _of_verb(text: str) -> Chain | None:
    if found := PASSIVE.fullmatch(text) or ACTIVE.fullmatch(text):
        is_time = re.search("when|year", found[1], re.I)
        return _with(found[2], f"{'when' if is_time else 'where'} {found[3]}")
    if found := re.fullmatch(r"where (?:is|are|lies) (.+)", text, re.I):
        return _with(found[1], "where lie")
    found = re.fullmatch(r"who (?!is |was |are |were |has |would |will |can |should )([a-z]+) (.+)", text, re.I)
    return _with(found[2], f"who {found[1].lower()}") if found else None


def _of_measure(text: str) -> Chain | None:
    if found := PEOPLE.fullmatch(text):
        return _with(found[1], "population")
    if found := re.fullmatch(r"how many ([a-z]+) (?:does|do|did) ([^\d]+?) (?:have|employ|own)", text, re.I):
        return _with(found[2], f"number of {found[1].lower()}")
    if found := re.fullmatch(r"(?:how much|what) (?:does|do) (.+?) (cost|weigh)", text, re.I):
        return _with(found[1], {"cost": "price", "weigh": "weight"}[found[2].lower()])
    if found := re.fullmatch(r"how much (?:is|are) ((?:an?|the|one) [^\d]+)", text, re.I):
        return _with(found[1], "price")
    found = re.fullmatch(r"how ([a-z]+) (?:is|was|are) (.+)", text, re.I)
    dimension = dimension_of(found[1].lower()) if found else None
    if not found or dimension is None or dimension.noun == "when begun":  # "how old" asks what day it is, too
        return None
    return _with(found[2], dimension.noun)


def _of_chinese(text: str) -> Chain | None:
    found = re.fullmatch(rf"([^，。,]+?的[^，。,]+?){ZH_ASKED}", text)
    if not found:
        return None
    thing, *relations = found[1].split("的")
    return Chain(thing, tuple(relations)) if thing and all(relations) else None


def _with(words: str, relation: str) -> Chain | None:
    inner = read_chain(_lower_first(words))
    return inner.of(relation) if inner else None


def _lower_first(words: str) -> str:
    return re.sub(r"^(?:The|A|An)(?= )", lambda found: found[0].lower(), words)
