"""How a memory recalls and fades: all that can be set of it, from where, and what is set for one memory alone.

defaults  <  what is set for this memory (`mindstream memory policy base=3`)  <  the settings of who opens it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from mindstream.errors import InputError
from mindstream.log.events import PolicySet
from mindstream.log.names import StreamKey
from mindstream.memory.fading import Strength
from mindstream.memory.recall.rerank import check_reranker
from mindstream.memory.store.store import Store
from mindstream.models.prompt import complaints

LAWS = ("first_s", "base", "cap_s", "passed_over_s", "asleep_s")
USUAL = Strength()
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class MemoryPolicy(BaseModel):
    """What can be set.

    Attributes:
        reranker: who ranks what the first stage found: none, model, or cross:NAME (memory/recall/rerank).
        reranked: how many of those it is given.
        returned: how many R returns, in a life.
        drawn: how many records a sleep draws.
        first_s, base, cap_s, passed_over_s, asleep_s: the constants of the laws (memory/fading).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    reranker: str = ""
    reranked: int = Field(20, ge=2, le=100)
    returned: int = Field(5, ge=1, le=50)
    drawn: int = Field(20, ge=0)
    first_s: Seconds = USUAL.first_s
    base: float = Field(USUAL.base, gt=1, allow_inf_nan=False)
    cap_s: Seconds = USUAL.cap_s
    passed_over_s: Seconds = USUAL.passed_over_s
    asleep_s: Seconds = USUAL.asleep_s

    @property
    def laws(self) -> Strength:
        """The constants of the laws."""
        return Strength(**{name: getattr(self, name) for name in LAWS})


def read_policy(*layers: Mapping[str, JsonValue]) -> MemoryPolicy:
    """Return what these say together, the later before the earlier.

    Raises:
        InputError: a name or a value that cannot be.
        SettingsError: no such reranker.
    """
    values: dict[str, JsonValue] = {}
    for layer in layers:
        values |= layer
    try:
        policy = MemoryPolicy.model_validate(values)
    except ValidationError as error:
        known = ", ".join(MemoryPolicy.model_fields)
        raise InputError(f"the policy of a memory: {complaints(error)}; what can be set: {known}") from None
    check_reranker(policy.reranker)
    policy.laws  # noqa: B018 (refuses what cannot be)
    return policy


async def open_policy(store: Store, stream: StreamKey, given: Mapping[str, JsonValue]) -> MemoryPolicy:
    """Return how a memory recalls and fades; `given`: what the settings of who opens it say."""
    return read_policy(await own_policy(store, stream), given)


async def own_policy(store: Store, stream: StreamKey) -> Mapping[str, JsonValue]:
    """Return what is set for this memory alone."""
    row = await store.last(stream, "policy_set")
    return row.event.policy if row is not None and isinstance(row.event, PolicySet) else {}


def parse_settings(words: Sequence[str]) -> dict[str, JsonValue]:
    """Read NAME=VALUE; a value is a number, or a name.

    Raises:
        InputError: one of them is not of this form.
    """
    found: dict[str, JsonValue] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise InputError(f"{word!r} sets nothing: write NAME=VALUE, as in base=3")
        try:
            number = float(value)
            found[name.strip()] = int(number) if number.is_integer() else number
        except (ValueError, OverflowError):
            found[name.strip()] = value.strip()
    return found
