"""What a town would ask of models: calls and tokens by kind, found by living a while with rules that count."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mindstream.models.model import Distribution, Part, Piece, Request
from mindstream.models.providers.address import Address
from mindstream.models.providers.prices import price
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.models.shorten import estimate_tokens
from mindstream.town.setting import Setting
from mindstream.town.town import Town


@dataclass
class CallCount:
    """What was asked in one kind of call: how often, with how many tokens in and out, how many of them static words."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    static: int = 0


@dataclass
class Counting:
    """Answers by rules, and counts what a model would have been asked and have answered; `by_kind`: by prompt."""

    name: str = "rules"
    by_kind: dict[str, CallCount] = field(default_factory=dict)
    role_of: dict[str, str] = field(default_factory=dict)
    _rules: Rules = field(default_factory=Rules)

    def without_rules(self, models: Mapping[str, str]) -> Counting:
        """Return what of it would be asked of models; `models`: a table role -> name, as for `Models.named`."""
        asked = {label: each for label, each in self.by_kind.items() if self.model_of(label, models) != Rules.name}
        return replace(self, by_kind=asked)

    def model_of(self, label: str, models: Mapping[str, str]) -> str:
        """Name the model that a kind of call goes to."""
        return models.get(self.role_of[label], models.get("default", Rules.name))

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        label = request.prompt.label()
        kind = self.by_kind.setdefault(label, CallCount())
        self.role_of[label] = request.role or request.prompt.role
        first, *_ = messages = request.messages
        kind.calls += 1
        kind.tokens_in += sum(estimate_tokens(message.text) for message in messages)
        kind.static += estimate_tokens(first.text) if first.role == "system" else 0
        async with aclosing(self._rules.reply(request)) as parts:
            async for part in parts:
                if isinstance(part, Piece):
                    kind.tokens_out += estimate_tokens(part.text)
                elif isinstance(part, Distribution):
                    kind.tokens_out += 1
                yield part


async def count_calls(
    setting: Setting, steps: int, folder: Path | None = None, on_step: Callable[[int], None] = lambda _: None
) -> Counting:
    """Live so many steps from the beginning with rules, and count what models would be asked.

    Rules say less than models do: tokens out are a lower bound.
    """
    counting = Counting()
    with TemporaryDirectory(dir=folder) as scratch:
        async with Town.open(scratch, replace(setting), models=Models(counting)) as town:
            await town.run(steps - 1, on_step)
    return counting


def cost_usd(counted: Counting, models: Mapping[str, str]) -> float | None:
    """Return what those calls cost, by role; None where a model's price is not known.

    `models`: a table role -> name, as for `Models.named`. Static words are taken for cached after the first call.
    """
    total = 0.0
    for label, asked in counted.without_rules(models).by_kind.items():
        name = counted.model_of(label, models)
        vendor, _, model = name.partition(":")
        cached = asked.static - asked.static // asked.calls
        cost = price(model, Address(name, vendor, model, None, ""), asked.tokens_in, asked.tokens_out, cached)
        if cost is None:
            return None
        total += cost
    return total
