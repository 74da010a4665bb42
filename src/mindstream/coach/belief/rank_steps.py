"""Which steps of a pack's library fit: by the topics that are known of the user, those of the newest words first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from mindstream.coach.belief.corrections import topics_of
from mindstream.coach.belief.think_in_phase import ThinkInPhase
from mindstream.coach.packs.pack import Step, in_language
from mindstream.coach.packs.reading import read_utterance
from mindstream.coach.packs.translate import topic_named
from mindstream.text.revise import revise
from mindstream.text.words import terms

CAUTION = 0.25
"""What a step that needs a caution must be the better by: the easy ones come first."""
LATE = 1.0
"""… and one that takes weeks or other people, while nothing else was tried."""
EVIDENCE = {"strong": 0.4, "moderate": 0.3, "limited": 0.1, "comfort": 0.0}


def spoken_lines(ask: ThinkInPhase) -> list[str]:
    """Return what the user said in this talk before the newest utterances."""
    return [line.text for line in ask.conversation if line.by_user]


def known_topics(ask: ThinkInPhase) -> set[str]:
    """Name the topics that stand in the belief or the user's words in this talk, as corrected, and not denied."""
    return topics_with(ask, ask.utterances)


def topics_with(ask: ThinkInPhase, utterances: Sequence[str]) -> set[str]:
    spoken = [*spoken_lines(ask), *utterances]
    held = [str(item) for value in ask.belief.values() for item in (value if isinstance(value, list) else [value])]
    named = {topic for text in held if (topic := topic_named(ask.pack, text))} | topics_of(ask.pack, held)
    gone = topics_of(ask.pack, spoken) - topics_of(ask.pack, revise(spoken))
    denied = {m.topic for text in spoken for m in read_utterance(ask.pack, text).mentions if m.denied}
    standing = topics_of(ask.pack, revise(spoken))
    return (named - gone - denied) | standing


def needed_topics(ask: ThinkInPhase) -> set[str]:
    """Name the topics of the trouble itself: those of the fields that the first phase needs."""
    needs = set(ask.pack.phases[0].needs)
    return {topic.id for topic in ask.pack.topics if topic.field in needs}


def newest_topics(ask: ThinkInPhase) -> set[str]:
    """Name the topics of the newest words; where they name none ("any idea for that?"), of the user's words before."""
    newest = {topic for text in ask.utterances for topic in read_utterance(ask.pack, text).topics}
    before = [line.text for line in ask.conversation if line.by_user][-1:]
    return newest or {topic for text in before for topic in read_utterance(ask.pack, text).topics}


def rank_steps(ask: ThinkInPhase, besides: set[str]) -> list[Step]:
    """Order the library's steps by how well they fit: the newest words first, then what is known, then evidence.

    A topic that many steps are about says little of which one fits.
    """
    known = known_topics(ask)
    count = Counter(topic for step in ask.pack.steps for topic in step.topics)
    newest, trouble = newest_topics(ask), needed_topics(ask)
    asked = set(terms(" ".join(ask.utterances)))
    tried = any(step.state in ("done", "going_on", "dropped") for step in ask.plan.steps)

    def fit(step: Step) -> float:
        about = set(step.topics)
        words = set(terms(f"{in_language(step.title, ask.language)} {in_language(step.do, ask.language)}"))
        spread = math.sqrt(len(about))
        told = {topic: 2.0 * (topic in newest) + (topic in known) * (1 + (topic in trouble)) for topic in about}
        named = sum(weight / math.sqrt(1 + math.log(count[topic])) for topic, weight in told.items())
        hard = (CAUTION if step.caution else 0.0) + (LATE if step.late and not tried else 0.0)
        return named / spread + 0.3 * len(asked & words) + EVIDENCE[step.evidence] - hard

    fitting = [s for s in ask.pack.steps if s.id not in besides and ask.pack.suits(s, known | newest)]
    about = [s for s in fitting if set(s.topics) & (known | newest)]
    return sorted(about or fitting, key=fit, reverse=True)
