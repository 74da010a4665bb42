"""The cost of model calls, from the log: tokens, seconds, US dollars, by day, user, role and model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from mindstream.clock import format_iso
from mindstream.errors import SettingsError
from mindstream.identifiers import StreamKey, shown_name
from mindstream.json_values import JsonObject
from mindstream.log.events import Logged, ModelCalled
from mindstream.memory.store.store import LogStore, read_log
from mindstream.models.providers.adapter import price
from mindstream.models.providers.address import address
from mindstream.models.recording import costs_nothing
from mindstream.settings import DEFAULT, RULES, Settings

By = Literal["day", "user", "role", "model"]
BYS: tuple[By, ...] = get_args(By)
BROKEN_OFF = "broken off"
"""The error that the log contains for a call whose answer was cancelled."""


@dataclass(slots=True)
class Total:
    """The sum of some model calls.

    Attributes:
        failed: calls that ended with an error.
        broken_off: calls that were cancelled; their usage is mostly not known.
        cached_tokens: input tokens that endpoints had cached from earlier prompts.
        seconds: the sum of their durations.
        cost_usd: the cost of the calls whose price is known.
        free: calls answered by rules or by a recording. Calls of a model on this machine are not among them: their
            known price is 0.
        unpriced: calls with usage whose price is not known.
    """

    name: str
    calls: int = 0
    failed: int = 0
    broken_off: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    cost_usd: float = 0.0
    free: int = 0
    unpriced: int = 0

    def add(self, call: ModelCalled) -> None:
        """Add a call to the sum."""
        self.calls += 1
        self.failed += call.error not in ("", BROKEN_OFF)
        self.broken_off += call.error == BROKEN_OFF
        self.input_tokens += call.input_tokens
        self.output_tokens += call.output_tokens
        self.cached_tokens += call.cached_tokens
        self.seconds += call.seconds
        if costs_nothing(call.model):
            self.free += 1
        else:
            self.cost_usd += call.cost_usd or 0.0
            self.unpriced += call.cost_usd is None and _used(call)

    def plain(self) -> JsonObject:
        """Return the sum as plain data; the cost is None if a price is unknown and the sum of the known prices is 0."""
        unknown = self.unpriced and not self.cost_usd
        cost = None if unknown else round(self.cost_usd, 6)
        return asdict(self) | {"seconds": round(self.seconds, 3), "cost_usd": cost}


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of model calls.

    Attributes:
        total: the sum of all calls.
        by: for each grouping, the sums of its groups, sorted by name.
        days: the sums by day and role, the days in order.
    """

    total: Total
    by: dict[By, list[Total]]
    days: dict[str, dict[str, Total]]


async def bill(store: LogStore, user: StreamKey | None = None, upto: int | None = None) -> Bill:
    """Sum up model calls. Days are days in UTC.

    Args:
        user: the user whose calls are counted; None: all users in the store.
        upto: the last row of the log that is counted; None: all rows.
    """
    total = Total("all")
    parts: dict[By, dict[str, Total]] = {by: {} for by in BYS}
    days: dict[str, dict[str, Total]] = {}
    async for logged, call in _calls(store, user):
        if upto is not None and logged.seq > upto:
            break
        total.add(call)
        names: dict[By, str] = {
            "day": format_iso(call.time(logged.at))[:10],
            "user": shown_name(logged.mind),
            "role": call.role,
            "model": call.model,
        }
        for by, name in names.items():
            parts[by].setdefault(name, Total(name)).add(call)
        days.setdefault(names["day"], {}).setdefault(call.role, Total(call.role)).add(call)
    by_names = {by: [found[name] for name in sorted(found)] for by, found in parts.items()}
    return Bill(total, by_names, {day: days[day] for day in sorted(days)})


async def _calls(store: LogStore, user: StreamKey | None) -> AsyncIterator[tuple[Logged, ModelCalled]]:
    async for logged in read_log(store, user, kinds=[ModelCalled.kind]):
        if isinstance(logged.event, ModelCalled):
            yield logged, logged.event


def _used(call: ModelCalled) -> bool:
    return call.error in ("", BROKEN_OFF) or bool(call.input_tokens or call.output_tokens)


TURN = {"talker": (1_530, 80), "reasoner": (490, 60), "safety": (235, 5)}
"""Input and output tokens per turn of the coach, by role, without hidden reasoning: `benchmarks/coach_tokens.py`,
29 November 2026, rounded to a sum of 2,400.
"""


def turn_usd(models: Mapping[str, str]) -> float | None:
    """Return the estimated cost of a turn of the coach in US dollars; None if a model's price is not known."""
    total = 0.0
    for role, (asked, answered) in TURN.items():
        name = models.get(role, models.get(DEFAULT, RULES))
        if name == RULES or name.startswith("playback:"):
            continue
        at = address(name)
        paid = price(at.model, at, asked, answered)
        if paid is None:
            return None
        total += paid
    return total


def describe_turn(settings: Settings) -> str:
    """Return a sentence about the cost of a turn of `chat` with the models of the settings."""
    try:
        usd = turn_usd(settings.models)
    except SettingsError:  # a model lacks its key, or does not exist
        return "the cost of a turn of chat is not known until all its models can be used"
    if usd is None:
        return (
            "the cost of a turn of chat is not known, because a model has no known price; `mindstream cost` counts"
            " tokens"
        )
    if not usd:
        return "a turn of chat costs nothing"
    tokens = sum(map(sum, TURN.values()))
    return f"a turn of chat costs about ${usd:.2g} ({tokens:,} tokens, more with reasoning or a long memory)"
