"""The policy of a memory: how it recalls, and whether unused records are archived.

A policy has three layers, of which later ones take precedence:
1. the defaults,
2. the values recorded for this memory (`mindstream memory policy base=3`, `Memory.open(policy="decay")`),
3. the settings of the process that opens the memory.

The retention policy is `keep` (default: records strengthen and rank higher, nothing is archived) or `decay` (the rules
of memory/forgetting_curve apply). A life records `decay` for its memory unless a policy is recorded. A memory that an
earlier version wrote keeps `decay`: a migration of the tables marks its stream, and the first process that opens it for
use records the policy as an event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field, JsonValue, ValidationError

from mindstream.clock import Moment
from mindstream.errors import InputError
from mindstream.identifiers import StreamKey
from mindstream.json_values import JsonObject
from mindstream.log.events import PolicySet
from mindstream.memory.forgetting_curve import DECAY, Strength
from mindstream.memory.recall.rerank import check_reranker
from mindstream.memory.store.registry import WRITTEN_UNDER_DECAY
from mindstream.memory.store.store import Commit, Entry, Store
from mindstream.models.prompt import complaints

LAWS = ("first_s", "base", "cap_s", "passed_over_s", "asleep_s")
USUAL = DECAY
DRAWN = 20
"""Number of random records that a sleep draws, if the policy does not say otherwise."""
Retention: TypeAlias = Literal["keep", "decay"]
AnyPolicy: TypeAlias = Retention | Mapping[str, JsonValue]
"""A retention policy by its name, or values of a `MemoryPolicy` by name."""
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class MemoryPolicy(BaseModel, frozen=True, extra="forbid"):
    """The settings of a memory.

    Attributes:
        retention: `keep`: nothing is archived unless the user asks; `decay`: recall and sleep archive unused records.
        reranker: the second stage of recall: none (or ""), model, or cross:NAME (memory/recall/rerank).
        reranked: maximum number of records that the reranker gets (more only if a recall returns more).
        returned: maximum number of records that a call of the recall tool of a life (named R) returns.
        drawn: number of records that a sleep draws at random. A drawn record gets weaker if it is unused.
        first_s, base, cap_s, passed_over_s, asleep_s: constants of the rules (memory/forgetting_curve); under `keep`
            the last two have no effect.
    """

    retention: Retention = "keep"
    reranker: str = ""
    reranked: int = Field(20, ge=2, le=100)
    returned: int = Field(5, ge=1, le=50)
    drawn: int = Field(DRAWN, ge=0)
    first_s: Seconds = USUAL.first_s
    base: float = Field(USUAL.base, gt=1, allow_inf_nan=False)
    cap_s: Seconds = USUAL.cap_s
    passed_over_s: Seconds = USUAL.passed_over_s
    asleep_s: Seconds = USUAL.asleep_s

    @property
    def laws(self) -> Strength:
        """The strength rules with these constants."""
        return Strength(**{name: getattr(self, name) for name in LAWS}, keeps_all=self.retention == "keep")


def read_policy(*layers: Mapping[str, JsonValue]) -> MemoryPolicy:
    """Merge layers of settings into a policy; later layers take precedence.

    Raises:
        InputError: a name is unknown or a value is invalid.
        SettingsError: there is no such reranker.
    """
    values: JsonObject = {}
    for layer in layers:
        values |= layer
    try:
        policy = MemoryPolicy.model_validate(values)
    except ValidationError as error:
        known = ", ".join(MemoryPolicy.model_fields)
        raise InputError(f"the policy of a memory: {complaints(error)}; known settings are {known}") from None
    check_reranker(policy.reranker)
    policy.laws  # noqa: B018 (raises InputError for invalid constants)
    return policy


async def open_policy(store: Store, stream: StreamKey, given: Mapping[str, JsonValue]) -> MemoryPolicy:
    """Return the policy of a memory without recording anything; `given`: the settings of the process that opens it."""
    return read_policy(await own_policy(store, stream), given)


async def adopt_policy(store: Store, stream: StreamKey, at: Moment, given: AnyPolicy) -> MemoryPolicy:
    """Return the policy of a memory that is opened for use, and record the settings that later openings must use.

    The recorded settings stay. A retention policy that is given by its name replaces the recorded one. A memory that an
    earlier version wrote, and for which no retention policy is recorded or given, gets `decay`. Settings that are given
    as a mapping apply to this opening only and are not recorded.

    Raises:
        InputError: `given` is not a policy, or has an unknown name or an invalid value.
        SettingsError: there is no such reranker.
    """
    recorded, own = await _recorded(store, stream), await own_policy(store, stream)
    if isinstance(given, str):
        own, given = {**own, "retention": given}, {}
    policy = read_policy(own, given)
    if own != recorded:
        event = PolicySet(policy=dict(own))
        await store.commit(Commit(mind=stream, at=at, entries=(Entry(event, "mindstream", system=True),)))
    return policy


async def own_policy(store: Store, stream: StreamKey) -> Mapping[str, JsonValue]:
    """Return the policy values that are recorded for this memory. If an earlier version of mindstream wrote the memory,
    and no retention policy is recorded, `decay` is added.
    """
    recorded = await _recorded(store, stream)
    if "retention" not in recorded and await store.taken_by(stream, WRITTEN_UNDER_DECAY) is not None:
        return {**recorded, "retention": "decay"}
    return recorded


async def _recorded(store: Store, stream: StreamKey) -> Mapping[str, JsonValue]:
    row = await store.last(stream, "policy_set")
    return row.event.policy if row is not None and isinstance(row.event, PolicySet) else {}


def parse_settings(words: Sequence[str]) -> JsonObject:
    """Parse words of the form NAME=VALUE; a value is a number or a name.

    Raises:
        InputError: a word has another form.
    """
    found: JsonObject = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise InputError(f"NAME=VALUE is expected, such as retention=decay or base=3, found {word!r}")
        try:
            number = float(value)
            found[name.strip()] = int(number) if number.is_integer() else number
        except (ValueError, OverflowError):
            found[name.strip()] = value.strip()
    return found
