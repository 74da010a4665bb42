"""The OpenAI-compatible API for chat user interfaces: /v1/models, /v1/chat/completions, /v1/responses."""

from __future__ import annotations

from fastapi import FastAPI

from mindstream.minds.chat_bot import ChatResponder
from mindstream.server.chat.completions import add_completions, add_models
from mindstream.server.chat.responses import add_responses
from mindstream.server.chat.turns import COMPANION
from mindstream.service.operations.runtime import Runtime


def add_chat(api: FastAPI, runtime: Runtime) -> None:
    """Add the OpenAI-compatible routes, and add the companion to the runtime's responders."""
    runtime.responders.setdefault(COMPANION, lambda: ChatResponder)
    add_models(api, runtime)
    add_completions(api, runtime)
    add_responses(api, runtime)
