"""GET /v1/models: who can be talked to. The packs, the companion, and the life of whoever asks, where there is one."""

from __future__ import annotations

from typing import Literal

from fastapi import FastAPI, Request
from pydantic import BaseModel

from mindstream.server.asking import who_of
from mindstream.server.chat.errors import ANSWERS
from mindstream.server.chat.whose import LIFE, whose
from mindstream.service.operations.house import House
from mindstream.service.operations.refusals import NotFound
from mindstream.service.operations.who import Who

BEGAN = 1_767_225_600
"""When all models were made, as OpenAI's API wants to be told: at the beginning of 2026."""


class Model(BaseModel):
    """Somebody who can be talked to."""

    id: str
    object: Literal["model"] = "model"
    created: int = BEGAN
    owned_by: str = "mindstream"


class ModelList(BaseModel):
    """Who can be talked to."""

    object: Literal["list"] = "list"
    data: list[Model]


def add_models(api: FastAPI, house: House) -> None:
    """Add the routes."""

    @api.get("/v1/models", tags=["chat"], operation_id="chat.models", responses=ANSWERS)
    async def models(request: Request) -> ModelList:
        """List who can be talked to: packs, the companion, a life."""
        who = who_of(request.scope)
        who.require("minds", "read")
        return ModelList(data=[Model(id=name) for name in await names_for(house, whose(house, who, request))])

    @api.get("/v1/models/{model:path}", tags=["chat"], operation_id="chat.model", responses=ANSWERS)
    async def model(request: Request, model: str) -> Model:
        """Tell of one of them."""
        who = who_of(request.scope)
        who.require("minds", "read")
        if model not in await names_for(house, whose(house, who, request)):
            raise NotFound(f"nobody is called {model[:100]!r} here")
        return Model(id=model)


async def names_for(house: House, who: Who) -> list[str]:
    """Return whom somebody can talk to."""
    from mindstream.life.state import read_state

    state = await read_state(await house.memory(who))
    return [*house.speaker_names(), *([LIFE] if state.goal else [])]
