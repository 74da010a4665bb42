"""Extraction without a model: what passages state, word for word, as something's property.

It reads sentences of a few forms ("the X of Y is V", "Y's X is V", "V is the X of Y", "Y was born in V", "V wrote Y",
"Y is 300 m high", Y的X是V), knows whom "he" or "it" means only where the sentence before begins with a name, and finds
nothing where no sentence says it so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mindstream.errors import ToolError
from mindstream.text.dimensions import DIMENSIONS, VERBS, adjectives_of
from mindstream.text.words import stem, terms

LONGEST = 24_000
NAME = (
    r"(?:(?:[Tt]he|[Aa]n?) )?(?:[a-z]+ ){0,2}?[A-Z][\w.'’-]*"
    r"(?: (?:(?:of|de|da|von|van|the|la|du) ){0,2}(?:[A-Z][\w'’-]*|\d+))*"
)
OWN = re.compile(r"(?:he|she|it|they|(?P<own>his|her|its|their))\b ?", re.I)
FULL_NAME = re.compile(r"[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)+")
SENTENCE_END = re.compile(r"\n(?=#|[-*] )|(?<=[.!?])\s+(?=[A-Z])|(?<=[。！？])")
IS = r"(?:is|was|are|were|became|has been|remains)"
MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
DATE = rf"(?:\d{{1,2}} {MONTH} \d{{3,4}}|{MONTH} \d{{1,2}}, \d{{3,4}}|{MONTH} \d{{4}}|\d{{3,4}}(?: BC)?)"
QUANTITY = r"\d[\d,.]*(?: (?:million|billion|thousand))?(?: (?:square |cubic )?[A-Za-z²³/%°]+|[一-鿿]{1,4})?"
COUNT = r"\d[\d,.]*(?: (?:million|billion|thousand))?"
VAGUE = r"(?:(?!for|with|in|at|of|and|more|less|fewer)[a-z]+ ){0,2}"
BEGINS = "born|founded|built|opened|established|completed|created|published"
ALIASES = {
    "author": "who wrote", "birthplace": "where born", "place of birth": "where born", "hometown": "where grow up",
    "home town": "where grow up", "birth date": "when born", "date of birth": "when born", "birthday": "when born",
    "year of birth": "when born", "nationality": "where come from", "location": "where lie",
    "when begun": "when " + BEGINS,
}  # fmt: skip
BOUNDARY = re.compile(
    r"\b(?:of|in|near|from|by|at|on|for|with|beside|after|before|behind|to|than|like|when|while|which|who|that|because|and"
    r"|but|or|as|where|if|during|since|until)\b"
)
"""Words behind which a phrase speaks of something else."""
DOUBT = re.compile(r"(?:not|no|never|perhaps|maybe|said|believed|thought|unknown|disputed|one of)\b|不")
PREDICATE = re.compile(rf"{QUANTITY} (?:{'|'.join(DIMENSIONS)})\b|(?!born)[a-z]+(?:ed|lt|de|en) (?:in|by|on|at|from)\b")
"""What is said of the thing that a phrase names, and is no value of a relation: "the tower of X is 31 metres high"."""
LONGEST_SENTENCE, MOST_OTHERS = 400, 4
LIES = "lie|lies|located|situated|stand|stands|is"


def extract(what: str, of: str, text: str) -> str:
    """Find in passages what they state, word for word, as a property of something; no model is asked.

    what: "capital", "height", "where born", "when founded", "who wrote"; of: what has it; text: the passages.
    """
    if not what.strip() or not of.strip():
        raise ToolError("extract needs what is asked for, and of what")
    sentences = [each for passage in text[:LONGEST].split("\n\n") for each in _sentences(passage)]
    for wanted in (what.strip(), ALIASES.get(what.strip().lower(), "")):
        for pattern in _patterns(wanted) if wanted else ():
            for sentence in sentences:
                if (value := _value(pattern, sentence, of, wanted)) is not None:
                    return value
    raise ToolError(f"the passages do not say, in words that are understood without a model: {what} of {of[:100]}")


def _sentences(passage: str) -> Iterator[str]:
    """Yield the sentences, with the name that "he" or "its" stands for in its place."""
    passage = re.sub(r"(?<=[\u4e00-\u9fff]),", "，", passage)
    body = re.sub(r"\A[^\n]{1,200}, (?:lines?|page) [\d-]+:\n", "", passage)
    subject = ""
    for line in SENTENCE_END.split(re.sub(r"(?<!\n)\n(?![\n#*-])", " ", body)):
        heading = re.match(r"#+ (.+?)(?:\n|$)", line)
        if heading:
            subject, line = heading[1].strip(), line[heading.end() :]
        for clause in re.split(r"; (?:and )?", " ".join(line.split()).strip("-*# ")):
            if said := OWN.match(clause) if subject else None:
                clause = f"{subject}{chr(39) + 's' if said['own'] else ''} {clause[said.end() :]}"
            elif begins := re.match(NAME, clause):
                is_short = bool(FULL_NAME.fullmatch(subject)) and subject.split()[-1] == begins[0]
                subject = subject if is_short else begins[0]
                clause = clause.replace(begins[0], subject, 1)
            yield from (
                each.rstrip(".。") for each in _predicates(subject, clause) if 0 < len(each) <= LONGEST_SENTENCE
            )


def _predicates(subject: str, clause: str) -> Iterator[str]:
    """Yield a clause, and what it says of its subject behind an "and": "Oslo is old and has a harbour"."""
    yield clause
    if subject and clause.startswith(subject):
        for further in re.finditer(r",? and (?=(?:is|was|has|had|lies|stands|ends|weighs|costs|measures) )", clause):
            yield f"{subject} {clause[further.end() :]}"


def _patterns(what: str) -> list[str]:
    """Return how a sentence may state it: `y` is what has the property, `v` the value."""
    asked, _, words = what.partition(" ")
    if asked in ("where", "when", "who") and words:
        return _verb_patterns(asked, words)
    noun = r"\s+".join(map(re.escape, what.split()))
    to = r"(?:of|in|for|at)"
    adjectives = "|".join(adjectives_of(what))
    found = [
        rf"(?:^|\b[Tt]he ){noun} {to} (?P<y>[^,;]+?),? {IS} (?P<v>.+)",
        rf"(?P<y>[^,;]+?)['’]s? {noun} {IS} (?P<v>.+)",
        rf"(?P<v>[^,;]+?),? {IS} the {noun} {to} (?P<y>[^,;]+)",
        rf"(?P<v>{NAME}), the {noun} {to} (?P<y>[^,]+)",
        rf"the {noun} {to} (?P<y>[^,]+), (?P<v>{NAME})",
        rf"(?P<y>[^,;]+?),? (?:has|had|have|with|and has|reaches)\b[^.;]*? {noun} of (?P<v>.+)",
        rf"(?P<y>[^，。]+?)的?{noun}(?:大?约)?(?:是|为|在|叫|有|:|：)(?P<v>[^，。；]+)",
        rf"(?P<v>[^，。]+?)是(?P<y>[^，。]+?)的{noun}$",
    ]
    if adjectives:
        found.append(
            rf"(?P<y>[^,;]+?) (?:{IS}|stands|rises|runs|flows|measures)\b[^.;]*?(?P<v>{QUANTITY}) (?:{adjectives})\b"
        )
    if what in VERBS:
        found.append(rf"(?P<y>[^,;]+?) (?:{VERBS[what]}) [^.;]*?(?P<v>{QUANTITY})$")
    counted = "inhabitants|people|residents" if what == "population" else re.escape(what.removeprefix("number of "))
    if what == "population" or what.startswith("number of "):
        found.append(rf"(?P<y>[^,;]+?) (?:has|had|have|is home to|employs) {VAGUE}(?P<v>{COUNT}(?= (?:{counted})\b))")
    return found + _agent_patterns(what)


def _verb_patterns(asked: str, words: str) -> list[str]:
    verb, _, particle = words.partition(" ")
    if asked == "who":
        return _agent_patterns(verb)
    forms = "|".join(verb.split("|")) if "|" in verb else LIES if verb in ("lie", "located") else _any_form(verb)
    middle = rf"(?:{forms})\b(?: {particle})?" if particle else rf"(?:{forms})\b"
    value = (
        rf"[^;]*?\b(?:in|on|at)? ?(?P<v>{DATE})"
        if asked == "when"
        else r"[^;]*? ?\b(?:in|at|near|from|on) (?P<v>(?!\d)[^,;]+)"
    )
    return [rf"(?P<y>[^;]+?) (?:(?:is|was|were|has|had|been) )*(?:[a-z]+ly )?{middle}{value}"]


def _any_form(verb: str) -> str:
    """Match any word that is a form of the verb; which it is is looked at later."""
    return rf"(?P<verb>{verb[:1]}[a-z]+)"


def _agent_patterns(noun: str) -> list[str]:
    """Return how a sentence says who did it: "V won Y", "Y was won by V"."""
    verb = rf"(?P<verb>{re.escape(noun[:1])}[a-z]+)"
    return [
        rf"(?P<v>{NAME})(?:,[^,]+,| of {NAME})? (?:first )?{verb} (?P<y>[^,;]+)",
        rf"(?P<y>[^;]+?) (?:is|was|were) (?:[a-z]+ )?{verb}\b[^;]*? by (?P<v>.+)",
    ]


def _value(pattern: str, sentence: str, of: str, what: str) -> str | None:
    """Return what a sentence states by a pattern, if it is about that thing."""
    begin = r"(?:^|[,;，] ?)" if pattern.startswith("(?P<") else ""
    for found in re.finditer(begin + pattern, sentence):
        groups = found.groupdict()
        if _is_about(groups["y"], of) and ("verb" not in groups or _is_form(groups["verb"], what)):
            value = groups["v"].strip()
            is_none = DOUBT.match(value) or PREDICATE.match(value)
            return None if is_none else _trim(groups["v"], what) or None
    return None


def _is_about(said: str, of: str) -> bool:
    """Tell whether what a sentence speaks of is what is asked about, and nothing of it, near it or named after it."""
    if not of.isascii():
        return said.strip() == of
    wanted, there = set(terms(of)), set(terms(said))
    owned = re.search(r"['’]s?(?= )", said) and not re.search(r"['’]", of)
    if not wanted or not wanted <= there or len(there - wanted) > MOST_OTHERS or owned:
        return False
    words = (said if BOUNDARY.search(of) else BOUNDARY.split(said)[0]).split()
    places = [at for at, word in enumerate(words) if wanted & set(terms(word))]
    if not places:
        return False
    is_whole = wanted <= set(terms(" ".join(words)))
    before, after = words[: places[0]], words[places[-1] + 1 :] if is_whole else []
    if terms(" ".join(before)) and re.sub(r"^(?:the|an?) ", "", of, flags=re.I)[:1].islower():
        return False  # "the north pier" is one of several
    return not any(word[0].isupper() and word.lower() not in ("the", "a", "an") for word in before) and not terms(
        " ".join(after)
    )


def _is_form(word: str, what: str) -> bool:
    """Tell whether a verb is the one of "who wrote", "where born", or of an agent noun: "winner"."""
    verb = what.partition(" ")[2].partition(" ")[0] if what.split()[0] in ("who", "when", "where") else what
    agent = re.sub(r"(.)\1$", r"\1", re.sub(r"(?:er|or)$", "", verb))
    return stem(word) in {stem(verb), stem(agent), stem(agent + "e")}


def _trim(value: str, what: str) -> str:
    """Return the value without what a sentence goes on to say."""
    value = re.sub(r"^(?:about|around|approximately|some|nearly|over|almost|大?约) ?", "", value.strip(" ,.，。"))
    if what.startswith("when"):
        return value
    if quantity := re.match(QUANTITY, value):
        return re.sub(r" (?:and|in|as|at|on|or|with|above|from|which|but)$", "", quantity[0].rstrip(".,"))
    if name := re.match(NAME, value):
        return re.sub(r"^(?:the|a|an) ", "", name[0], flags=re.I)
    return re.split(r"[,;，；]| (?:and|which|who|that|where|with|in|since|because|but)\b", value)[0].strip()
