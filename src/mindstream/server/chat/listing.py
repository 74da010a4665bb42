"""GET /v1/models: the packs, the companion, and the caller's life, if there is one."""

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
"""Creation time of all models, which OpenAI's API requires: the beginning of 2026."""


class Model(BaseModel):
    """A model that can be talked to."""

    id: str
    object: Literal["model"] = "model"
    created: int = CREATED
    owned_by: str = "mindstream"


class ModelList(BaseModel):
    """The models that can be talked to."""

    object: Literal["list"] = "list"
    data: list[Model]


def add_models(api: FastAPI, runtime: Runtime) -> None:
    """Add the routes."""

    async def names_for(request: Request) -> list[str]:
        principal = principal_of(request.scope)
        principal.require("minds", "read")
        state = await read_state(await runtime.memory(user_of(runtime, principal, request)))
        return [*runtime.responder_names(), *([LIFE] if state.goal else [])]

    @api.get("/v1/models", tags=["chat"], operation_id="chat.models", responses=OPENAI_RESPONSES)
    async def models(request: Request) -> ModelList:
        """List the models: packs, the companion, a life."""
        return ModelList(data=[Model(id=name) for name in await names_for(request)])

    @api.get("/v1/models/{model:path}", tags=["chat"], operation_id="chat.model", responses=OPENAI_RESPONSES)
    async def model(request: Request, model: str) -> Model:
        """Return one of the models."""
        if model not in await names_for(request):
            raise NotFound(f"there is no model {model[:100]!r} here")
        return Model(id=model)
