"""The calls of one run of an evaluation: counted, and kept as they end: a run that was killed asks none twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from mindstream.clock import SystemClock
from mindstream.errors import BudgetSpent, ModelDenied, ModelError, ModelUnavailable
from mindstream.ledger import Ledger
from mindstream.models.model import Call, Model, Part, Piece, Request, Usage
from mindstream.models.recording import fingerprint
from mindstream.models.shorten import estimate_tokens, request_tokens
from mindstream.models.wrappers.meter import Metered

CLOCK = SystemClock()
HALTING = (BudgetSpent, ModelDenied, ModelUnavailable)
PARTS = TypeAdapter(list[Part])
USED = TypeAdapter(list[Usage])


@dataclass
class RunCalls:
    """What the calls of a run took.

    Attributes:
        usd: None once a price is not known.
        before_s: seconds that calls took which were made before the run was killed.
        halted: why the run says nothing: a model cannot be had, or nothing more may be spent.
    """

    ledger: Ledger
    run: str
    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    before_s: float = 0.0
    halted: ModelError | None = None
    _asked: Counter[str] = field(default_factory=Counter)

    def key(self, request: Request, name: str) -> str:
        """Return what a call is kept under: what is asked, of whom, the how-manieth time in this run."""
        asked = fingerprint(request, name, self.run)
        self._asked[asked] += 1
        return f"{asked}.{self._asked[asked]}"

    def take(self, used: list[Usage]) -> None:
        """Count what a call took, with all its attempts."""
        self.calls += 1
        for each in used:
            self.input_tokens += each.input_tokens
            self.cached_tokens += each.cached_tokens
            self.output_tokens += each.output_tokens
            self.usd = None if self.usd is None or each.cost_usd is None else self.usd + each.cost_usd


class KeptModel:
    """A model whose calls are those of a run; one that is kept is answered again from there."""

    def __init__(self, model: Model, calls: RunCalls) -> None:
        self.name = model.name
        self._model, self._calls = model, calls

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        calls, key = self._calls, self._calls.key(request, self.name)
        if (found := calls.ledger.find(key)) is not None:
            calls.take(USED.validate_python(found["used"]))
            calls.before_s += found["seconds"]
            for part in PARTS.validate_python(found["parts"]):
                yield part
            return
        began, heard, metered = CLOCK.elapsed(), list[Part](), list[Usage]()
        try:
            async with aclosing(self._model.reply(replace(request, on_call=_into(metered)))) as parts:
                async for part in parts:
                    heard.append(part)
                    yield part
        except HALTING as error:  # a tool that asks a model may live with it, and the run may not
            calls.halted = error
            raise
        finally:
            used = metered or [part for part in heard if isinstance(part, Usage)] or _estimated(request, heard)
            calls.take(used)
        row: dict[str, Any] = {
            "row": "call",
            "prompt": request.prompt.label(),
            "parts": PARTS.dump_python(heard, mode="json"),
            "used": [asdict(each) for each in used],
            "seconds": CLOCK.elapsed() - began,
        }
        calls.ledger.keep(key, row)


def _estimated(request: Request, heard: list[Part]) -> list[Usage]:
    """Estimate what a call took that was broken off, or of which the endpoint told nothing."""
    said = "".join(
        part.text if isinstance(part, Piece) else part.arguments for part in heard if isinstance(part, Piece | Call)
    )
    return [Usage(request_tokens(request), estimate_tokens(said))] if said else []


def _into(metered: list[Usage]) -> Any:
    def tell(call: Metered) -> None:
        if call.usage is not None:
            metered.append(call.usage)

    return tell
