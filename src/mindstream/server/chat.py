"""A model behind any chat page: /v1/models, /v1/chat/completions."""

from __future__ import annotations

from fastapi import FastAPI

from mindstream.service.operations.house import House


def add_chat(api: FastAPI, house: House) -> None:
    """Add the routes of the chat door."""
