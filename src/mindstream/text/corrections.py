"""Corrections in words: "three, not four", "I meant Tuesday", "不是A，是B", "never mind the dog", "forget …".

Read without a model; what they make of what was said: `text/revise`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mindstream.text.words import UNSPACED, terms

LONGEST = 240
"""A correction is short, in characters."""
ZH = re.compile(f"[{UNSPACED}]")
SAYS_WRONG = (
    r"(?:that|this|it)(?:'s| is| was)? (?:wrong|not right|not true|incorrect|a mistake|a typo)"
    r"|wrong|scratch that|correction"
    r"|i (?:misspoke|mistyped|was wrong)|my (?:mistake|bad)|typo|i (?:said|got|wrote|told you) (?:that|it) wrong"
    r"|i (?:mixed|muddled) (?:that|it|them) up"
)
LEADS = (
    r"no|nope|nah|sorry|oops|whoops|wait|oh|ah|hm+|er+m?|um+|actually|well|hang on|hold on"
    r"|i mean|ok(?:ay)?|and|but|so"
)
OPENING = re.compile(rf"^\W*(?:(?P<sure>{SAYS_WRONG})|(?P<lead>{LEADS}))(?:\b[\s,.;:!\-–—…]+|$)", re.IGNORECASE)
SAYS_WRONG_ZH = (
    r"不对|错了|(?:我)?(?:刚才|刚刚|前面|之前)?(?:说|记|写|打|讲|弄|搞)错了?|口误|更正(?:一下)?|纠正一下|笔误"
)
LEADS_ZH = r"等等|啊|哦|噢|抱歉|对不起|不好意思|其实|准确地?说|我是说|我的意思是|不(?=[，,])|不是(?=[，,])|嗯"
OPENING_ZH = re.compile(rf"^\W*(?:(?P<sure>{SAYS_WRONG_ZH})|(?P<lead>{LEADS_ZH}))[，,。：:！!、\s]*")
CLOSING = re.compile(
    rf"(?: ?[,;.，。；–—-] ?| )(?:(?:{SAYS_WRONG}|sorry|actually|i meant?|instead)|(?:{SAYS_WRONG_ZH}))[\s.!。！了]*$",
    re.IGNORECASE,
)
IT_IS = (
    r"(?:(?:it|that|this|he|she|they|there)(?:'s| is| was|'re| are| were)|make (?:that|it)"
    r"|(?:it )?should (?:be|have been|say)|rather|more like|really)"
)
BREAK = r" ?[,;.:–—-] ?"
PAIRS = [
    re.compile(
        rf"^i said (?P<old>.+?)(?:{BREAK}| )(?:but |and )?(?:i )?(?:really "
        rf"|actually )?meant (?:to say )?(?P<new>.+)$",
        re.I,
    ),
    re.compile(
        rf"^(?:i )?(?:really |actually )?meant (?:to say )?(?P<new>.+?)(?:{BREAK}(?:and )?| )not (?P<old>.+)$", re.I
    ),
    re.compile(rf"^(?:{IT_IS} )?not (?P<old>.+?)(?:{BREAK}(?:but |{IT_IS} |i meant )*| but )(?P<new>.+)$", re.I),
    re.compile(
        rf"^(?:it|that|this|he|she|they|there) ?(?:isn't|wasn't|aren't|is not"
        rf"|was not) (?P<old>.+?){BREAK}(?:but |{IT_IS} )*(?P<new>.+)$",
        re.I,
    ),
    re.compile(rf"^(?P<new>.+?)(?:{BREAK}(?:and |it's |it is |it was )?| (?:and )?)not (?P<old>.+)$", re.I),
]
MEANT = re.compile(
    r"^(?:i meant(?: to say)?|make (?:that|it)|(?:it )?should (?:be|have been|say)|i meant) (?P<new>.+)$", re.I
)
TAKES_BACK = re.compile(
    r"^(?:please )?(?:never ?mind|scratch|disregard|ignore"
    r"|don't mind)(?: about)? (?P<old>(?!that\b|this\b|it\b|me\b|you\b).+)$",
    re.I,
)
NEGATES = re.compile(r"^(?:i|we|there|my \w+)\b.*?(?:n't|\bnot|\bno longer|\bnever|\bno)\s+(?P<old>.+)$", re.I)
PAIRS_ZH = [
    re.compile(r"^(?:我)?(?:刚才)?说的?是?(?P<old>[^，。；]+?)[，,；]?其?实?(?:是)?想说(?:的是)?(?P<new>.+)$"),
    re.compile(
        r"^(?:并)?不[是叫](?P<old>[^，。；,]+?)(?:[，,；。]\s*(?:而|应该|其实)*[是叫]?|而?(?:应该)?是)(?P<new>.+)$"
    ),
    re.compile(r"^(?:应该|其实)?[是叫]?(?P<new>[^，。；,]+?)[，,；]\s*(?:而|并)?不[是叫](?P<old>.+)$"),
    re.compile(r"^把(?P<old>[^，。；]+?)改[成为](?P<new>.+)$"),
]
MEANT_ZH = re.compile(r"^(?:应该(?:是|说|叫)|改成|我想说的?是)(?P<new>.+)$")
TAKES_BACK_ZH = re.compile(
    r"^(?:(?:先)?(?:别|不用|不要|甭)(?:再)?(?:管|提|理)(?P<a>[^，。；,]+?)了?|(?P<b>[^，。；,]+?)(?:的事|这事"
    r"|那事)?(?:就)?(?:算了|不算了?|别提了|不提了|当我没说))(?:[，。；,！].*)?$"
)
FORGET = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|please|pls|just|so|and|actually|no|oh|hey|well|sorry|also)\b[\s,.]*"
    r"|(?:can|could|would|will) you (?:please |just )?"
    r"|you (?:can|may|should) (?:please |just )?|i(?:'d like| want| need) you to )*(?:forget"
    r"|delete|erase|remove|don't remember|stop remembering)"
    r"(?: about| all about)? (?P<what>.+)$",
    re.IGNORECASE,
)
FORGET_ZH = re.compile(
    r"^\W*(?:(?:请|麻烦|那|好|你|可以|能不能|能|就|先)[，,]?)*(?:(?:忘了|忘掉|忘记|删掉|删除|不要记住?|别记住?|别记着)(?P<a>.+)"
    r"|把(?P<b>.+?)(?:忘了|忘掉|忘记|删了|删掉|删除)(?:吧|了)?)"
)
WHAT_I_SAID = re.compile(
    r"^(?:everything |anything |all )?(?:that |what(?:ever)? |the (?:thing|things|bit|part"
    r"|stuff) )?(?:i|i've|i have|we) (?:just |ever |once )?"
    r"(?:said|told|mentioned|wrote|tell)(?: to)?(?: you)?(?: (?:that|about|of|on|before|earlier|just now))*\s*",
    re.IGNORECASE,
)
WHAT_I_SAID_ZH = re.compile(
    r"^(?:我)?(?:刚才|刚刚|之前|上次|前面)?(?:跟你|和你|对你)?(?:说|讲|提|告诉你)(?:过|到|了)?的?(?:关于)?"
    r"|^(?:我)?关于"
)
OF_THE_TALK = re.compile(
    r"^(?:(?:all (?:of )?)?(?:it|that|this|them)|everything|all|me|about me|everything about me"
    r"|(?:(?:the|my|that|this|your) )?(?:\w+ )?"
    r"(?:plan|step|idea|suggestion|advice|question|data|history|memory|notes?)s?)\b(?! i\b)(?:$|[\s,.!?].*)"
    r"|^(?:一切|所有|全部|计划|步骤|这个|那个|它|这步|那步|我的?(?:数据|记录)|关于我的一切)",
    re.IGNORECASE,
)
TAIL = re.compile(
    r" ?(?:[,.;!?，。；！？].*|\b(?:thing|stuff|bit|business|part|please|again|right now)\b.*"
    r"|\b(?:because|since|as|it's|that's|i'm|i) .*)$",
    re.I | re.S,
)
TAIL_ZH = re.compile(r"(?:这件事|那件事|的事情?|的那?些?话|这事|那事|吧|了|啊|呢|的){1,4}$")
FILLERS = re.compile(
    rf"^(?:(?:{IT_IS}|i mean|actually|really|just|only|about|around|maybe|probably|in fact|on|at"
    rf"|in|by|to|for|from)\s+)+| (?:actually|really|instead|though|please|now)$",
    re.IGNORECASE,
)
FILLERS_ZH = re.compile(r"^(?:其实|应该|才|就|大概|差不多|是|叫|在|为)+|(?:才对|而已|了|呢|啊|吧|啦|的){1,4}$")
APOLOGY = re.compile(r"\b(?:so+r+y|soz|excuse me|my bad|typo)\b|\bi (?:meant?|ment|mean)(?: to say)?\b", re.IGNORECASE)
CLEFT = re.compile(r"^(?P<who>.+?) (?:who|that|which) (?P<does>.+)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Correction:
    """What an utterance puts right.

    Attributes:
        new: what holds; "" where something is only taken back.
        old: what does not hold; "" where it is not said.
        sure: the words say themselves that something was wrong.
        forgets: it is asked that something be forgotten; where `old` is "", what was said last.
    """

    new: str
    old: str = ""
    sure: bool = False
    forgets: bool = False

    @property
    def named(self) -> tuple[str, ...]:
        """What it names, as it was said."""
        return tuple(filter(None, (self.new, self.old)))


def read_correction(text: str) -> Correction | None:
    """Read a correction, or a wish that something named be forgotten; None where an utterance is neither."""
    plain = " ".join(text.replace("’", "'").split())
    if len(plain) > LONGEST or plain.endswith(("?", "？")):
        return None
    if asked := _forget(plain):
        return asked
    chinese = bool(ZH.search(plain))
    body, sure, lead = _opened(plain, OPENING_ZH if chinese else OPENING)
    closed = CLOSING.sub("", body)
    sure, body = sure or closed != body, closed.rstrip(".!。！ ")
    if not body:
        return None
    return _chinese(body, sure, lead) if chinese else _english(body, sure, lead)


def only_corrects(text: str) -> bool:
    """Tell whether words say that something was wrong, and nothing else."""
    return not _opened(text, OPENING_ZH if ZH.search(text) else OPENING)[0].strip(" .!。！")


def _opened(text: str, opening: re.Pattern[str]) -> tuple[str, bool, bool]:
    """Return a text without its opening words, whether they say that something was wrong, and whether there are any."""
    sure = lead = False
    while found := opening.match(text):
        if not found.end():
            break
        sure, lead = sure or bool(found["sure"]), True
        text = text[found.end() :]
    return text, sure, lead


def _forget(text: str) -> Correction | None:
    chinese = bool(ZH.search(text))
    found = (FORGET_ZH if chinese else FORGET).match(text)
    if not found:
        return None
    what = (found["a"] or found["b"]) if chinese else found["what"]
    what = what.rstrip(".!。！ ")
    said = (WHAT_I_SAID_ZH if chinese else WHAT_I_SAID).match(what)
    if not said and OF_THE_TALK.match(what):
        return None
    left = what[said.end() :] if said else what
    left = TAIL_ZH.sub("", re.split("[，。；！,]", left)[0]) if chinese else _head(left, bool(said))
    if not terms(left) and not said:
        return None
    return Correction("", left if terms(left) else "", sure=bool(said), forgets=True)


def _head(what: str, said: bool) -> str:
    """Return the thing itself: "the coffee thing, I quit" is about the coffee."""
    if said:
        return re.split(r"[,.;!]", re.sub(r"^(?:i|we)\s+|\bthe (?:other day|start)\b", "", what, flags=re.I))[0]
    return TAIL.sub("", what)


def _english(body: str, sure: bool, lead: bool) -> Correction | None:
    if found := TAKES_BACK.match(body):
        return Correction("", TAIL.sub("", found["old"]), sure=True)
    for shape in PAIRS:
        if found := shape.match(body):
            return Correction(_trimmed(found["new"]), _trimmed(found["old"]), sure=sure or "meant" in body)
    if found := MEANT.match(body):
        return Correction(_trimmed(found["new"]), sure=True)
    if sure and (found := NEGATES.match(body)):
        return Correction(body, found["old"], sure=True)
    said = re.sub(rf"^{IT_IS}\s+", "", body, flags=re.I)
    if sure or (lead and (said != body or len(body.split()) <= 4)):
        return Correction(_trimmed(said), sure=sure)
    return None


def _chinese(body: str, sure: bool, lead: bool) -> Correction | None:
    if found := TAKES_BACK_ZH.match(body):
        return Correction("", TAIL_ZH.sub("", found["a"] or found["b"]), sure=True)
    for shape in PAIRS_ZH:
        if found := shape.match(body):
            return Correction(_trimmed(found["new"]), _trimmed(found["old"]), sure=sure)
    if found := MEANT_ZH.match(body):
        return Correction(_trimmed(found["new"]), sure=True)
    if sure or (lead and (body[0] == "是" or len(body) <= 6)):
        return Correction(_trimmed(body), sure=sure)
    return None


def _trimmed(words: str) -> str:
    """Return what is named, without the words around it."""
    if ZH.search(words):
        first = re.sub("^[^是]+的是", "", re.split("[，。；,]", words.strip())[0])
        return FILLERS_ZH.sub("", first).strip()
    first = re.split(r"[,;.!](?:\s|$)", APOLOGY.sub(" ", words).strip(), maxsplit=1)[0]
    if found := CLEFT.match(first):
        first = found["who"]
    return FILLERS.sub("", first).strip(" ,.;!")
