"""What the rules alone would decide, by the moves that an utterance makes; the quick gate hears it beside the words.

They wait for what only the Reasoner can give (a plan, a step, resources, a change after feedback), in any phase, as
soon as there is something to plan for; and they wake the belief reasoner for nothing that only keeps the talk going.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindstream.coach.gates.gate import Decision, Situation
from mindstream.coach.moves.moves import ADAPTS, ASKS, CONSENTS, FILLING, PUTS_OFF, SOCIAL, moves_of
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.reading import Reading, read_utterance
from mindstream.text.language import language_of
from mindstream.text.windows import both_ends, first_and_last, sentences
from mindstream.text.words import terms

CLAUSES = re.compile(r"[.,!?;。，！？；\n]+")
ABOUT = re.compile(r"\b(about|abuot|against|because of|due to) (my|the|all|these|our|his|her)\b", re.I)
OFFER = {
    "en": re.compile(r"\b(plan|steps?|suggest\w*|ideas?|resources?|work (this|it) out|put something together)\b", re.I),
    "zh": re.compile(r"计划|方案|步骤|一步|建议|资料|资源"),
}

SENTENCES = 40
"""Of a long utterance so many sentences, the first and the last, are read by themselves."""

TOLD = 3
"""A clause with so many words of its own tells something."""

SMALL = 8
"""A sentence that only keeps the talk going has no more words than this that count."""


class ByRules:
    """Decides by the moves that an utterance makes, sentence by sentence."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._later_needs = {name for phase in pack.phases[1:] for name in phase.needs}
        self._plannable = {topic for step in pack.steps for topic in step.topics} or {t.id for t in pack.topics}

    def decide(self, situation: Situation) -> Decision:
        whole, parts = self._readings(situation.text)
        if self._keeps_talking(whole, parts, situation):
            return Decision(False, thinks=False, why="only keeps the talk going")
        asked = self._asked(whole, parts, situation)
        if not asked:
            return Decision(False, why="asks for nothing that needs thought first")
        if not situation.planning and not self._something_to_plan_for(whole, situation):
            return Decision(False, why="nothing is known yet to plan for")
        return Decision(True, why=f"asks: {', '.join(sorted(asked))}")

    def _readings(self, text: str) -> tuple[Reading, list[Reading]]:
        """Read an utterance, whole and by sentence."""
        whole, parts = read_utterance(self._pack, text), first_and_last(sentences(both_ends(text)), SENTENCES)
        return whole, [read_utterance(self._pack, part) for part in parts] if len(parts) > 1 else [whole]

    def _asked(self, whole: Reading, parts: Sequence[Reading], situation: Situation) -> set[str]:
        """Return what is asked of the Reasoner; what is put off, or only remembered, does not count."""
        if whole.moves & PUTS_OFF:
            return set()
        wants = ASKS | ADAPTS if situation.planning else ASKS
        asked = {move for one in parts if "recall" not in one.moves for move in one.moves & wants}
        if asked or "recall" in whole.moves:
            return asked
        consents = bool(whole.moves & CONSENTS) and not whole.moves & {"no", "question"}
        offered = bool(OFFER.get(whole.language, OFFER["en"]).search(situation.said)) and "?" in _marks(situation.said)
        due = situation.phase.plans and not situation.has_plan
        return {"yes"} if consents and (due or (offered and "yes" in whole.moves)) else set()

    def _something_to_plan_for(self, whole: Reading, situation: Situation) -> bool:
        """Tell whether a trouble is known: from before, by its topic, or because it is told beside the wish."""
        if situation.known or situation.phase.name != self._pack.phases[0].name or not self._pack.phases[0].needs:
            return True
        topics = [topic for topic in map(self._pack.topic, whole.topics) if topic and topic.id in self._plannable]
        if any(topic.field not in self._later_needs for topic in topics):
            return True
        if ABOUT.search(whole.text):
            return True
        clauses = [clause for clause in CLAUSES.split(both_ends(whole.text)) if len(terms(clause)) >= TOLD]
        return any(
            not moves_of(clause, whole.language) & (ASKS | SOCIAL) for clause in first_and_last(clauses, SENTENCES)
        )

    def _keeps_talking(self, whole: Reading, parts: Sequence[Reading], situation: Situation) -> bool:
        """Tell whether every sentence is small talk, and none can be the answer to a question."""
        if any(topic.field for topic in map(self._pack.topic, (m.topic for m in whole.mentions)) if topic):
            return "recall" in whole.moves and len(parts) == 1
        if "later" in whole.moves and not whole.moves & {"plan", "resources"}:  # whatever keeps them from it now
            return all("later" in one.moves or len(terms(one.text)) <= SMALL for one in parts)
        if situation.planning and whole.moves & (ADAPTS | {"like"}) and "recall" not in whole.moves:
            return False
        if situation.phase.plans and not situation.has_plan and whole.moves & CONSENTS:
            return False
        asked = "?" in _marks(situation.said)
        return all(_social(one, asked) for one in parts)


def _social(one: Reading, answers: bool) -> bool:
    """Tell whether a sentence says nothing of its speaker; `answers`: a question came before it."""
    if "recall" in one.moves or not re.search(r"\w", one.text):
        return True
    if not one.moves & SOCIAL or one.moves - SOCIAL - FILLING:
        return False
    if not answers:
        return len(terms(one.text)) <= SMALL
    return not one.moves & {"okay", "yes", "no"} and all(map(_says_nothing, CLAUSES.split(one.text)))


def _says_nothing(clause: str) -> bool:
    """Tell whether a clause can be no answer: small talk, or a word that goes with it ("thanks, mate")."""
    if moves_of(clause, language_of(clause)) & SOCIAL:
        return len(terms(clause)) <= SMALL
    return len(terms(clause)) <= 1 and not re.search(r"\d", clause)


def _marks(said: str) -> str:
    """Return the last sentence's end, Chinese marks as Latin ones: '?' where the mind ended with a question."""
    return said.replace("？", "?").rstrip()[-80:]
