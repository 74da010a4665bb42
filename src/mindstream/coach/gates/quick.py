"""The quick gate: hears the utterance too, by a classifier that ships with the package; no model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from mindstream import caches
from mindstream.coach.gates.by_rules import ByRules
from mindstream.coach.gates.features import Features
from mindstream.coach.gates.gate import Decision, Situation
from mindstream.coach.gates.logistic import sigmoid
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.reading import read_utterance
from mindstream.coach.step_question import plan_answers
from mindstream.text.classifier import Classifier, View, views, words
from mindstream.text.corrections import read_correction
from mindstream.text.windows import both_ends

FILE = Path(__file__).with_name("quick.npz")
"""Written by benchmarks/train_classifiers.py."""
BEFORE = 80
"""How much of what the mind said last is heard, in characters: its end, where questions and offers stand."""
ASLEEP = -1.25
"""Below these log odds the belief reasoner is left asleep: a little unsure, it is rather woken …"""
AWAKE = 1.0
"""… unless every clause is small talk to the rules: then the classifier must be sure."""


@cache
def shipped_classifier() -> Classifier:
    """Return the classifier that comes with the package."""
    return Classifier(FILE)


def classifier_input(situation: Situation) -> list[View]:
    """Return what the classifier hears: the utterance, and the end of what was said before it."""
    return [*views(both_ends(situation.text)), words(situation.said[-BEFORE:], "s", 2)]


class QuickGate:
    """Waits where the words, and the state of the talk, sound like a wish for the Reasoner's work."""

    name = "quick"

    def __init__(self, pack: Pack) -> None:
        self._pack, self._rules, self._features = pack, ByRules(pack), Features(pack)
        self._last: tuple[Situation, Decision] | None = None
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Let go of the last utterance: something was erased."""
        self._last = None

    def decide(self, situation: Situation) -> Decision:
        """Decide; twice the same for the same situation, at the price of one."""
        belief = situation.belief if situation.known or not situation.unthought else {"unthought": True}
        looked_at = replace(situation, belief=belief, unthought=0)  # what is being thought about will be known
        if self._last is None or self._last[0] != looked_at:
            self._last = (looked_at, self._decide(looked_at))
        return self._last[1]

    def _decide(self, situation: Situation) -> Decision:
        numbers, rule = self.numbers(situation)
        odds = shipped_classifier().log_odds(classifier_input(situation), numbers)
        waits = odds["waits"] > 0
        answered = waits and plan_answers(self._pack, situation.told, read_utterance(self._pack, situation.text))
        may_answer = rule.thinks and numbers["answers a question"] > 0
        correction = read_correction(situation.text)
        puts_right = correction is not None and bool(correction.sure or correction.old or correction.forgets)
        thinks = waits or may_answer or puts_right or odds["thinks"] > (ASLEEP if rule.thinks else AWAKE)
        why = "the plan answers it" if answered else f"by rule: {rule.why}"
        return Decision(waits and not answered, thinks, why, sigmoid(odds["waits"]))

    def numbers(self, situation: Situation) -> tuple[dict[str, float], Decision]:
        """Return what is looked at beside the words, and what the rules alone would do."""
        rule = self._rules.decide(situation)
        return self._features.of(situation, rule), rule

    async def weigh(self, situation: Situation) -> Decision:
        return self.decide(situation)
