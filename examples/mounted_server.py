"""Mount the server in a FastAPI application: run it by `uvicorn mounted_server:mine`, or directly."""

import asyncio

import httpx2
from fastapi import FastAPI

from mindstream.server import app

api_app = app("data")
mine = FastAPI(lifespan=api_app.lifespan)
mine.mount("/mind", api_app)


@mine.get("/")
async def home() -> dict[str, str]:
    return {"hello": "this is mine; /mind/api/v1 is mindstream's"}


async def ask_it() -> None:
    """Send a request as a client would, here without a port."""
    transport = httpx2.ASGITransport(mine)
    async with api_app.lifespan(), httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        print((await client.get("/")).json()["hello"])


if __name__ == "__main__":
    asyncio.run(ask_it())
