"""GET /v1/models: the packs, bots and the companion, and the user's life if it has a goal."""

from __future__ import annotations

from typing import Literal

from fastapi import FastAPI, Request
from pydantic import BaseModel

from mindstream.life.state import read_state
from mindstream.server.chat.turns import LIFE, user_of
from mindstream.server.problems import OPENAI_RESPONSES
from mindstream.server.rest import principal_of
from mindstream.service.operations.principal import NotFound
from mindstream.service.operations.runtime import Runtime

CREATED = 1_767_225_600
"""The creation time that is given for all models, because OpenAI's API requires one: the beginning of 2026."""


class Model(BaseModel):
    """A model that answers chat messages; `id`: its name."""

    id: str
    object: Literal["model"] = "model"
    created: int = CREATED
    owned_by: str = "mindstream"


class ModelList(BaseModel):
    """The models that answer chat messages."""

    object: Literal["list"] = "list"
    data: list[Model]


def add_models(api: FastAPI, runtime: Runtime) -> None:
    """Add the routes below /v1/models."""

    async def names_for(request: Request) -> list[str]:
        principal = principal_of(request.scope)
        principal.require("minds", "read")
        state = await read_state(await runtime.memory(user_of(runtime, principal, request)))
        return [*runtime.listed_names(), *([LIFE] if state.goal else [])]

    @api.get("/v1/models", tags=["chat"], operation_id="chat.models", responses=OPENAI_RESPONSES)
    async def models(request: Request) -> ModelList:
        """List the models: packs, bots, the companion, and `life` if the user's life has a goal."""
        return ModelList(data=[Model(id=name) for name in await names_for(request)])

    @api.get("/v1/models/{model:path}", tags=["chat"], operation_id="chat.model", responses=OPENAI_RESPONSES)
    async def model(request: Request, model: str) -> Model:
        """Return one of the models."""
        if model not in await names_for(request):
            raise NotFound(f"there is no model {model[:100]!r}; GET /v1/models lists the models")
        return Model(id=model)
