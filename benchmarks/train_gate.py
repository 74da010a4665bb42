"""Train the quick gate's second opinion and write its weights into the package.

    python benchmarks/train_gate.py

From gate_words.yaml and the five batteries: none of them tests it any more (docs/gates.md has what each showed when it
was new). What the rules say is a feature among others; but the rules were written with these sentences in view and are
nearly always right about them, which they are not about sentences that nobody has seen. So each sentence that must wait
is also shown as if the rules had missed it, with the weight of such misses (a fifth: what they missed of a set when
they first saw it).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import yaml
from gates import BATTERIES, Labelled, battery

from mindstream.minds.gates.features import VERSION, Features
from mindstream.minds.gates.gate import Situation
from mindstream.minds.gates.logistic import Logistic
from mindstream.minds.gates.opinion import FILE
from mindstream.minds.gates.quick import QuickGate
from mindstream.packs.load import load
from mindstream.packs.pack import Pack

MISSED = 0.2
SEEN = ("battery", "battery_fresh", "battery_third", "battery_fourth", "battery_fifth")


def words(pack: Pack) -> list[Labelled]:
    """Read the training sentences, each in each of its phases."""
    source = yaml.safe_load(Path(__file__).with_name("gate_words.yaml").read_text("utf-8"))
    return [
        Labelled(Situation(text, pack.phase(phase), {"told": True}, group.get("plan", False)), group["waits"], True)
        for group in source
        for text in [*group["en"], *group["zh"]]
        for phase in group["phases"]
    ]


def main() -> None:
    pack = load("sleep")
    rule, features = QuickGate(pack, opinion=None), Features(pack)
    weights = Logistic(features.prior("quick waits", 2.0), features.spread(0.5, 2.0))
    examples = [each for name in SEEN for each in battery(pack, BATTERIES / f"{name}.yaml")] + words(pack)
    for at in np.random.default_rng(0).permutation(len(examples)):
        each = examples[at]
        row = features.row(each.situation, rule.decide(each.situation))
        weights.learn(row, each.waits)
        if each.waits:
            weights.learn(features.as_if_missed(row), True, MISSED)
    kept = {name: round(float(value), 3) for name, value in zip(features.names, weights.mean, strict=False)}
    words_ = [round(float(value), 3) for value in weights.mean[len(features.names) :]]
    FILE.write_text(json.dumps({"version": VERSION, "named": kept, "words": words_}, indent=0) + "\n", "utf-8")
    print(f"{FILE}: {len(examples)} examples, {weights.outcomes} updates")


if __name__ == "__main__":
    main()
