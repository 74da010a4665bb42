"""How near an answer comes to the one that was written for its test: ROUGE-2, ROUGE-L (Lin 2004), tokens that match.

`token_match` is no BERTScore: it matches greedily like it, but over the default embedder's token vectors, which know no
context. BERTScore itself (Zhang 2020) is asked for by the name of a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mindstream.errors import SettingsError
from mindstream.models.embedders.embedder import unit
from mindstream.models.embedders.wordllama import table, token_ids

LONGEST = 4_000
"""So many characters of an answer are compared."""
Pairs = Sequence[tuple[str, str]]
"""Each an answer, and the one that was written for the test."""


def score_answers(pairs: Pairs, bert_model: str = "") -> list[dict[str, float]]:
    """Score answers; each score is an F between 0 and 1 (BERTScore's may fall below).

    Words are those of Unicode (UAX 29); each Chinese character is one.

    Raises:
        SettingsError: a package is not installed, or the model cannot be loaded.
    """
    short = [(one[:LONGEST], other[:LONGEST]) for one, other in pairs]
    rouge = _rouge()
    found = [{**rouge(said, wanted), "token_match": token_match(said, wanted)} for said, wanted in short]
    if bert_model:
        for each, score in zip(found, _bert_scores(short, bert_model), strict=True):
            each["bert_score"] = score
    return found


def token_match(said: str, wanted: str) -> float:
    """Match each token of one text with the nearest of the other, both ways; return the F of both means."""
    one, other = token_ids(said), token_ids(wanted)
    if not one or not other:
        return 0.0
    near = unit(table()[one].copy()) @ unit(table()[other].copy()).T
    precision, recall = float(np.mean(near.max(axis=1))), float(np.mean(near.max(axis=0)))
    return 2 * precision * recall / (precision + recall) if min(precision, recall) > 0 else 0.0


def _rouge() -> Callable[[str, str], Mapping[str, float]]:
    try:
        from rouge_score_rs import rouge_scorer, tokenizers
    except ImportError:
        raise SettingsError(
            "ROUGE needs a package that is not installed: pip install 'mindstream[experiment]'"
        ) from None
    scorer: Any = rouge_scorer.RougeScorer(  # type: ignore[no-untyped-call]
        ["rouge2", "rougeL"], tokenizer=tokenizers.UnicodeTokenizer()
    )

    def score(said: str, wanted: str) -> Mapping[str, float]:
        found = scorer.score(wanted, said)
        return {"rouge_2": found["rouge2"].fmeasure, "rouge_l": found["rougeL"].fmeasure}

    return score


def _bert_scores(pairs: Pairs, model: str) -> list[float]:
    try:
        import bert_score
        from transformers import AutoConfig
    except ImportError:
        raise SettingsError(
            "BERTScore needs packages that are not installed: pip install 'mindstream[bertscore]'"
        ) from None
    try:
        known = model in bert_score.utils.model2layers
        layers = None if known else AutoConfig.from_pretrained(model).num_hidden_layers
        scorer: Any = bert_score.BERTScorer(model_type=model, num_layers=layers)
        spoken = [at for at, pair in enumerate(pairs) if all(text.strip() for text in pair)]  # it fails on blank ones
        if not spoken:
            return [0.0] * len(pairs)
        _, _, found = scorer.score([pairs[at][0] for at in spoken], [pairs[at][1] for at in spoken])
    except (OSError, ValueError) as error:
        raise SettingsError(f"BERTScore cannot be had from {model!r}: {error}") from None
    scores = dict(zip(spoken, map(float, found), strict=True))
    return [scores.get(at, 0.0) for at in range(len(pairs))]
