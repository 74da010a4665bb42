"""What becomes of a quantity by a verb, and the other words that stories of quantities are read by."""

from __future__ import annotations

from mindstream.text.words import stem

GOES = (
    "give lose spend eat sell use break leave leak drop drink die burn throw remove donate pay steal melt wilt escape"
    " cut"
)
COMES = "buy find receive earn collect win gain add arrive join get come"
IS_THERE = "have hold carry contain cost weigh own"
IS_DONE = (
    "travel drive run walk fly ride need make bake read work produce plant pick save share divide split pour pack fill"
    " print sew knit paint lay write cycle sail"
)


def _stems(words: str) -> set[str]:
    return {stem(word) for word in words.split()}


BE = {"is", "are", "was", "were", "be", "been"}
STATES = {*_stems(IS_THERE), *BE, "has", "had"}
"""Verbs that say how much there is: a second one of one thing is another time of it, or a contradiction."""
SHARED = _stems("share divide split")
SIGNS = dict.fromkeys(_stems(GOES), -1) | dict.fromkeys(_stems(COMES), 1) | dict.fromkeys(_stems(IS_DONE) | STATES, 0)
PARTICLES = {"off": -1, "out": -1, "away": -1} | dict.fromkeys(("back", "up", "down", "on", "in", "at"))
PREPOSITIONS = {
    "on", "in", "at", "to", "from", "for", "with", "by", "during", "of", "into", "among", "between", "out", "after",
    "before",
}  # fmt: skip
PRONOUNS = {"he", "she", "it", "they", "i", "we", "there"}
AUXILIARIES = {"do", "does", "did", "will", "has", "have", "had", *BE}
ASKING = {*PRONOUNS, *PREPOSITIONS, "do", "does", "did", "will", "the", "a", "each", "all", "money", "go"}
"""Words of a question that say nothing of what is asked for."""
UNREAD = set(  # words that say more of a quantity than a story reads
    "than as twice double some several few not no never except if more less fewer nobody would might may about first"  # noqa: SIM905
    " last remaining half dozen pair both other others another until his her their my your each every per".split()
)
CURRENCIES = {*_stems("dollar euro pound crown yen yuan franc rupee peso"), "元", "块", "角"}


def sign_of(verb: str) -> int | None:
    """Return whether a quantity goes (-1), comes (1), or is there (0) by a verb; None where it is not known."""
    return SIGNS.get(stem(verb.lower()))


def sign_of_phrase(words: list[str]) -> int | None:
    """Return the same of a verb with what belongs to it: "get off", "are sold", "leak out"."""
    words = words[1:] if len(words) > 1 and words[0] in BE else words
    sign = sign_of(words[0]) if words else None
    particle = PARTICLES.get(words[1]) if len(words) > 1 else None
    return sign if sign is None or particle is None else particle
