"""A version of a pool's retriever: plain data that can be written where the pool is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pydantic import BaseModel, Field, JsonValue, ValidationError

from mindstream.errors import InputError
from mindstream.sharing.retriever.head import Head

WIDEST = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A head, where it comes from, and how it did.

    Attributes:
        number: 0 is the untrained one.
        parent: the number of the version that it was trained on from.
        embedder: whose vectors it is for.
        admitted: the exemplar whose admission made it; "" before the first.
        learned_from: how many exemplars' candidates it was trained on.
        basis: what said which candidates help: `logprobs`, `stated`, or `stand-in`.
        held_out, before: how often what it ranks first helps, on exemplars that it was not trained on; the same of its
            parent.
    """

    number: int
    parent: int
    embedder: str
    head: Head
    admitted: str = ""
    learned_from: int = 0
    basis: str = ""
    held_out: float = 0.0
    before: float = 0.0

    @classmethod
    def untrained(cls, embedder: str, width: int) -> Version:
        """Return the version that every pool begins with."""
        return cls(0, 0, embedder, Head.untrained(width))

    def as_data(self) -> dict[str, JsonValue]:
        """Return it as JSON."""
        head = self.head
        kept = _Kept(
            **{name: getattr(self, name) for name in NAMED},
            width=head.width,
            matrix=head.as_text(),
            scale=head.scale,
            bias=head.bias,
            means=head.means_as_text(),
        )
        return kept.model_dump(mode="json")

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Version:
        """Read what `as_data` gave.

        Raises:
            InputError: it is no version.
        """
        try:
            kept = _Kept.model_validate(dict(data))
        except ValidationError as error:
            raise InputError(f"this is no version of a retriever: {error.errors()[0]['msg']}") from None
        head = Head.from_text(kept.matrix, kept.width, kept.scale, kept.bias, kept.means)
        return cls(head=head, **kept.model_dump(include=NAMED))


NAMED = {each.name for each in fields(Version)} - {"head"}


class _Kept(BaseModel, extra="forbid", allow_inf_nan=False):
    number: int = Field(ge=0)
    parent: int = Field(ge=0)
    embedder: str
    width: int = Field(ge=1, le=WIDEST)
    matrix: str
    scale: float
    bias: float
    means: str = ""
    admitted: str
    learned_from: int = Field(ge=0)
    basis: str
    held_out: float
    before: float
