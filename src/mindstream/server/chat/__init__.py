"""A model behind any chat page, as OpenAI's API has it: /v1/models, /v1/chat/completions, /v1/responses."""

from __future__ import annotations

from fastapi import FastAPI

from mindstream.minds.responder import ResponderFactory
from mindstream.server.chat.completions import add_completions
from mindstream.server.chat.listing import COMPANION, add_models
from mindstream.server.chat.responses import add_responses
from mindstream.service.operations.runtime import Runtime


def _companion() -> ResponderFactory:
    from mindstream.service.chat.companion import Companion  # it is loaded when it is first spoken to

    return Companion


def add_chat(api: FastAPI, runtime: Runtime) -> None:
    """Add the routes of the chat door, and the companion to those who can answer."""
    runtime.responders.setdefault(COMPANION, _companion)
    add_models(api, runtime)
    add_completions(api, runtime)
    add_responses(api, runtime)
