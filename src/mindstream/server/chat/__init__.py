"""A model behind any chat page, as OpenAI's API has it: /v1/models, /v1/chat/completions, /v1/responses."""

from __future__ import annotations

from fastapi import FastAPI

from mindstream.server.chat.completions import add_completions
from mindstream.server.chat.listing import add_models
from mindstream.server.chat.responses import add_responses
from mindstream.service.operations.house import House


def add_chat(api: FastAPI, house: House) -> None:
    """Add the routes of the chat door, and the companion to those who can answer."""
    from mindstream.service.chat.companion import NAME, Companion

    house.speakers.setdefault(NAME, lambda: Companion)
    add_models(api, house)
    add_completions(api, house)
    add_responses(api, house)
