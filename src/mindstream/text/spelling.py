"""Words by which people ask for something, put right where they are typed in haste or in dialect; others stay."""

from __future__ import annotations

import re

from rapidfuzz.distance import OSA

from mindstream.caches import remember

HASTY = {
    "plan": "pln paln plna plann paln", "plans": "plns palns", "step": "stpe setp stp steo",
    "steps": "stpes setps stps", "next": "nxt netx enxt nex", "help": "hlep hepl halp hlp",
    "please": "pls plz plse pleas", "make": "mak amke maek mke", "about": "abuot abotu abut",
    "give": "giv gvie gimme", "need": "nede ned neeed", "want": "wnat wnt", "what": "wat wht waht wot whit",
    "how": "hwo hoo", "should": "shoud shuld shld sholud shud", "could": "coud culd", "can": "cna cn",
    "you": "u yuo", "are": "r", "your": "ur yr", "do": "od", "don't": "dont dnt", "doesn't": "doesnt",
    "didn't": "didnt", "won't": "wont", "can't": "cant", "it": "ti", "like": "liek lik", "work": "wrok wokr",
    "tips": "tipps", "advice": "advise advis", "idea": "ida idae", "ideas": "idaes", "video": "vid vidoe",
    "videos": "vids", "thanks": "thx thanx thnks tanks tnx", "okay": "okey", "hello": "helo hallo",
    "know": "knwo kno", "remember": "rember remeber", "that": "taht tht", "try": "tyr",
    "something": "smth sth somthing", "anything": "anythin", "tomorrow": "tmrw tmr tomorow", "night": "nite",
    "which": "wich whcih wihch", "when": "wen whne", "where": "wher whre whaur", "what's": "wats whts whit's whits",
    "who": "woh wha",
    "against": "agianst", "first": "frist fisrt", "was": "wis wuz", "my": "mah", "our": "oor", "on": "oan",
    "to": "tae", "around": "roond", "house": "hoose", "going": "gaun goin", "doing": "daein doin", "dog": "dug",
    "the": "da teh hte",
}  # fmt: skip
"""The right word, and how it comes."""
EXACT = {wrong: right for right, wrongs in HASTY.items() for wrong in wrongs.split()}
LONG = [
    "resource",
    "resources",
    "article",
    "articles",
    "suggest",
    "suggestion",
    "suggestions",
    "recommend",
    "recommendation",
    "routine",
    "strategy",
    "schedule",
    "different",
    "something",
    "anything",
    "another",
    "podcast",
    "podcasts",
    "website",
    "remember",
    "programme",
]
WORD = re.compile(r"[A-Za-z']+")
MY = re.compile(r"(?<!my )(?<!our )(?<!the )(?<!his )(?<!her )(?<!your )\bma (?=[a-z])", re.IGNORECASE)
I_SAY = re.compile(r"\bah(?=(?:'m|'ve|'d|'ll| (?:am|was|wis|have|had|do|did|go|get|got|need|drink|eat|take"
               r"|sleep|wake|work|live|say|said|tell|telt|told|think|want)\b))", re.IGNORECASE)  # fmt: skip
"""Scots and Southern words that stand for others where these follow."""


@remember(10_000)
def _right(word: str) -> str:
    if word in EXACT:
        return EXACT[word]
    if len(word) >= 6 and word not in LONG:
        for long in LONG:
            if word[0] == long[0] and OSA.distance(word, long, score_cutoff=2) <= (1 if len(long) < 9 else 2):
                return long
    return word


def correct_spelling(text: str) -> str:
    """Return an English text with such words put right."""
    text = I_SAY.sub("I", MY.sub("my ", text))
    return WORD.sub(lambda found: found[0] if (new := _right(found[0].lower())) == found[0].lower() else new, text)
