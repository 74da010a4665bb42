"""How the rules say a user's words back, first person turned into second (ELIZA's reflection, Weizenbaum 1966)."""

from __future__ import annotations

import re

from mindstream.text.language import Language

PERSONS = {
    "i": "you", "i'm": "you're", "im": "you're", "i've": "you've", "ive": "you've", "i'd": "you'd", "i'll": "you'll",
    "me": "you", "my": "your", "mine": "yours", "myself": "yourself", "we": "you", "we're": "you're", "we've": "you've",
    "we'd": "you'd", "we'll": "you'll", "us": "you", "our": "your", "ours": "yours", "ourselves": "yourselves",
}  # fmt: skip
BE = {"am": "are", "was": "were", "wasn't": "weren't"}
"""What follows "I" and changes with it; one word may stand between ("I still am")."""
SECOND = re.compile(r"\b(?:you|your|yours|yourself|ur|u)\b|[你您]", re.IGNORECASE)
WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)?")
OPENINGS = re.compile(
    r"^(?:(?:yes|yeah|no|well|ok|okay|oh|hm+|um+|lol|haha)\b[,.!:]+ *"
    r"|(?:so|and|but|because|cause|cos|actually)\b[, ]+)+",
    re.IGNORECASE,
)
OPENINGS_ZH = re.compile(r"^(?:(?:[嗯哦啊唉诶]+|是的|对|不|不是|好的?|那)[，,。 ]+|(?:其实|可是|但是?|因为)[，, ]*)+")
"""Words that only lead in; "no" and "不" do so only before a mark: else they belong to what is said."""
ASKING = re.compile(
    r"(?:please|tell|give|show|explain|say|make|help|stop|go|repeat|remind|delete|forget|let|do|don't|can|could|write"
    r"|send|speak|talk|read|play|sing|wait|look|come|answer|start|skip|try|change|summari[sz]e|call|put|add|get)\b"
    r"|[请讲说给帮别再换删忘]|告诉|重复|跳过|总结",
    re.IGNORECASE,
)
"""How requests begin; they are not said back."""
FRAGMENT = re.compile(
    r"(?:since|when|if|as|although|while|after|before|until|than|or|which|that's why)\b", re.IGNORECASE
)
PUTS_RIGHT = re.compile(
    r"\b(?:so+r+y|soz|excuse me|meant|ment|typo|misspoke|mistake)\b"
    r"|\b(?:came|was|is|wrote|said|got) (?:it |that )?(?:out )?wrong\b"
    r"|[说說讲講写寫打弄记記]错|[说說讲講写寫打弄记記]錯|不好意思|抱歉",
    re.IGNORECASE,
)
"""Who puts something right is not told back how they said so."""
LONGEST = 110


def mirror(text: str, language: Language) -> str:
    """Return what was said as said to its speaker, without its last mark; "" where that would not read well."""
    plain = " ".join(text.replace("’", "'").split()).strip().rstrip(".!。！…~～ ")
    if not plain or len(plain) > LONGEST or SECOND.search(plain) or PUTS_RIGHT.search(plain):
        return ""
    if re.search(r"[?？!！\n*_`<>]", plain):
        return ""
    if language == "zh":
        bare = OPENINGS_ZH.sub("", plain)
        if ASKING.match(bare):
            return ""
        return re.sub("我们|咱们", "你们", bare).replace("自我", "\0").replace("我", "你").replace("\0", "自我")
    bare = OPENINGS.sub("", plain)
    if FRAGMENT.match(bare) or ASKING.match(bare):
        return ""
    turned = _turned(bare)
    return turned[:1].upper() + turned[1:] if len(WORD.findall(bare)) > 1 else ""


def goes_on(said: str, language: Language) -> str:
    """Return a reflected sentence as it stands after other words: its first letter small where that is no name."""
    first = WORD.match(said)
    small = first is not None and (
        first[0].lower() in {*PERSONS.values(), "the", "a", "an", "it", "it's", "since", "because"}
    )
    return said[:1].lower() + said[1:] if small and language != "zh" else said


def _turned(text: str) -> str:
    since_i = 99
    parts, end = [], 0
    for found in WORD.finditer(text):
        word, since_i = found[0], since_i + 1
        low = word.lower()
        new = PERSONS.get(low, word)
        if low == "i":
            since_i = 0
        elif low in BE and since_i <= 2:
            new = BE[low]
        if new is not word and found.start() and text[: found.start()].rstrip()[-1:] in {".", "!"}:
            new = new[:1].upper() + new[1:]
        parts += [text[end : found.start()], new]
        end = found.end()
    return "".join([*parts, text[end:]])
