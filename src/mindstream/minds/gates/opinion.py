"""The quick gate's second opinion: weights shipped with the package, for wishes in words that the rules do not know."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from mindstream.minds.gates.features import VERSION, Features
from mindstream.minds.gates.gate import Decision, Situation
from mindstream.packs.pack import Pack

FILE = Path(__file__).with_name("opinion.json")
"""Written by benchmarks/train_gate.py."""


class Opinion:
    """Says how likely a wish for the Reasoner's work was missed by the rules."""

    def __init__(self, pack: Pack) -> None:
        self._features = Features(pack)
        kept = json.loads(FILE.read_text("utf-8"))
        if kept["version"] != VERSION:
            raise ValueError(f"{FILE} is of features {kept['version']}, not {VERSION}: run benchmarks/train_gate.py")
        named = [kept["named"].get(name, 0.0) for name in self._features.names]
        self._weights = np.array([*named, *kept["words"]])

    def probability(self, situation: Situation, rule: Decision) -> float:
        """Return how likely the Reasoner has something that the answer needs."""
        return float(1 / (1 + np.exp(-self._weights @ self._features.row(situation, rule))))
