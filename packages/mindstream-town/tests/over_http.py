"""A scripted model behind a fake OpenAI-compatible endpoint, called over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from fake_endpoint import Asked, FakeEndpoint, Says

from mindstream.models.model import Model, Part, Piece, Request
from mindstream.models.providers.provider import provider
from mindstream.models.roles import Models


class OverHttp:
    """Send each request to an endpoint where a scripted model answers it.

    Args:
        mind: the scripted model; it gets the typed prompt, while the endpoint has only the text.
    """

    def __init__(self, mind: Model, door: FakeEndpoint) -> None:
        self._mind, self.client, self._answers = mind, provider(f"{door.url}#any"), dict[str, str]()
        self.name = self.client.name
        door.otherwise = self._answer

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        async with aclosing(self._mind.reply(request)) as parts:
            said = "".join([part.text async for part in parts if isinstance(part, Piece)])
        self._answers["\n".join(each.text for each in request.messages)] = said
        async with aclosing(self.client.reply(request)) as parts:
            async for part in parts:
                yield part

    def _answer(self, asked: Asked) -> Says:
        return Says(self._answers["\n".join(each["content"] for each in asked.body["messages"])])


@asynccontextmanager
async def over_http(mind: Model, door: FakeEndpoint) -> AsyncIterator[Models]:
    """Open models for every role whose endpoint is answered by a scripted model."""
    behind = OverHttp(mind, door)
    try:
        yield Models(behind)
    finally:
        await behind.client.aclose()
