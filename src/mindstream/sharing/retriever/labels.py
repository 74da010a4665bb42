"""What a model has said of candidates: for each pair, how unlikely its answer is after each of some others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mindstream.sharing.retriever.unlikely import Basis


@dataclass(frozen=True)
class Labels:
    """Labels by one model, on one basis.

    Attributes:
        of: gives, for a pair's id, p(not Y | candidate, X) by the candidate's id.
    """

    basis: Basis
    model: str
    of: Callable[[str], Mapping[str, float]]
