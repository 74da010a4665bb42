"""The cost of calls of models, from the log: tokens, seconds, US dollars, by day, user, role and model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from pydantic import JsonValue

from mindstream.clock import format_iso
from mindstream.errors import SettingsError
from mindstream.log.events import Logged, ModelCalled
from mindstream.log.names import StreamKey, shown_name
from mindstream.memory.store.store import LogStore, read_log
from mindstream.models.providers.address import address
from mindstream.models.providers.prices import price
from mindstream.models.recording import costs_nothing
from mindstream.settings import DEFAULT, RULES, Settings

By = Literal["day", "user", "role", "model"]
BYS: tuple[By, ...] = get_args(By)
BROKEN_OFF = "broken off"
"""The error of a call in the log whose answer was cancelled."""


@dataclass(slots=True)
class Total:
    """The sum of some calls.

    Attributes:
        failed: calls that ended with an error.
        broken_off: calls that were cancelled; their usage is mostly not known.
        cached_tokens: input tokens that endpoints had cached from earlier prompts.
        seconds: the sum of their durations.
        cost_usd: of the calls whose price is known.
        free: calls that rules or a recording answered.
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
        """Count a call."""
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

    def plain(self) -> dict[str, JsonValue]:
        """Return it as plain data; the cost is None if no price at all is known."""
        unknown = self.unpriced and not self.cost_usd
        cost = None if unknown else round(self.cost_usd, 6)
        return asdict(self) | {"seconds": round(self.seconds, 3), "cost_usd": cost}


@dataclass(frozen=True, slots=True)
class Bill:
    """The sum of all calls, and the same calls grouped, in the order of names.

    Attributes:
        days: by day and role, the days in order.
    """

    total: Total
    by: dict[By, list[Total]]
    days: dict[str, dict[str, Total]]


async def bill(store: LogStore, user: StreamKey | None = None, upto: int | None = None) -> Bill:
    """Sum up the calls of a user; None: of all users of the data folder. Days are those of UTC.

    Args:
        upto: the last row of the log that counts; None: the newest.
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


TURN = {"talker": (1_400, 120), "reasoner": (1_000, 175), "safety": (300, 5)}
"""Input and output tokens of a turn of the coach by role, without hidden reasoning. The sum, 3.0k, is the mean of four
English conversations of 24 November 2026 (docs/talker-reasoner.md); its division among roles is estimated."""


def turn_usd(models: Mapping[str, str]) -> float | None:
    """Return the estimated cost of a turn of the coach in US dollars; None if a model's price is not known."""
    total = 0.0
    for role, (asked, answered) in TURN.items():
        name = models.get(role, models.get(DEFAULT, RULES))
        if name == RULES or name.startswith("playback:"):
            continue
        at = address(name)
        paid = 0.0 if at.vendor in ("gguf", "ollama") else price(at.model, at, asked, answered)
        if paid is None:
            return None
        total += paid
    return total


def describe_turn(settings: Settings) -> str:
    """Return a sentence about the cost of a turn of `chat` with the models of the settings."""
    try:
        usd = turn_usd(settings.models)
    except SettingsError:
        usd = None
    if usd is None:
        return "what a turn of chat costs is not known (genai-prices lacks a model); `mindstream cost` counts tokens"
    if not usd:
        return "a turn of chat costs nothing"
    tokens = sum(map(sum, TURN.values()))
    return f"a turn of chat costs about ${usd:.2g} ({tokens:,} tokens, more with reasoning or a long memory)"
