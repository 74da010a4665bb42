"""A model behind any chat page, as OpenAI's API has it: /v1/models, /v1/chat/completions, /v1/responses."""

from __future__ import annotations

from fastapi import FastAPI

from mindstream.minds.responder import ResponderFactory
from mindstream.server.chat.completions import add_completions
from mindstream.server.chat.listing import COMPANION, add_models
from mindstream.server.chat.responses import add_responses
from mindstream.service.operations.house import House


def _companion() -> ResponderFactory:
    from mindstream.service.chat.companion import Companion  # it is loaded when it is first spoken to

    return Companion


def add_chat(api: FastAPI, house: House) -> None:
    """Add the routes of the chat door, and the companion to those who can answer."""
    house.speakers.setdefault(COMPANION, _companion)
    add_models(api, house)
    add_completions(api, house)
    add_responses(api, house)
