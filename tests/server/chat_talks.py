"""A conversation as a chat page keeps it, through OpenAI's client, and a model for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
from fake_endpoint import Asked, Behaviour, Says
from openai import OpenAI
from served import Served


def talker(words: str, notes: Mapping[str, str] | None = None, pause_s: float = 0.0) -> Callable[[Asked], Behaviour]:
    """Answer with a text, and note a fact if the newest message contains its key."""

    def answer(asked: Asked) -> Behaviour:
        messages = asked.body["messages"]
        if not messages[0]["content"].startswith("You keep notes"):
            return Says(words, pause_s=pause_s)
        newest = messages[-1]["content"]
        facts = [
            {"text": text, "predicate": key, "rests_on": ""} for key, text in (notes or {}).items() if key in newest
        ]
        return Says(json.dumps({"facts": facts}))

    return answer


class Talk:
    """A conversation kept by a page, which sends all of it with each request."""

    def __init__(self, client: OpenAI, model: str, user: str = "", chat: str = "", system: str = "") -> None:
        self._client, self._model, self._user = client, model, user
        self._headers = {"X-OpenWebUI-Chat-Id": chat} if chat else {}
        self._system = [{"role": "system", "content": system}] if system else []
        self.messages: list[dict[str, str]] = []

    def say(self, text: str) -> str:
        """Send a message and return the answer."""
        self.messages.append({"role": "user", "content": text})
        return self._ask()

    def regenerate(self) -> str:
        """Request another answer to the last message."""
        if self.messages[-1]["role"] == "assistant":
            self.messages.pop()
        return self._ask()

    def _ask(self) -> str:
        more: dict[str, Any] = {"user": self._user} if self._user else {}
        messages: Any = [*self._system, *self.messages]
        stream = self._client.chat.completions.create(
            model=self._model, messages=messages, stream=True, extra_headers=self._headers, **more
        )
        answer = "".join(each.choices[0].delta.content or "" for each in stream if each.choices)
        self.messages.append({"role": "assistant", "content": answer})
        return answer

    @staticmethod
    def rows(
        served: Served, user: str, kind: str, headers: Mapping[str, str] | None = None
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        """Return the rows of a kind in a user's log."""
        with served.client(headers=dict(headers or {})) as plain:
            found = plain.get(f"/api/v1/users/{user}/log", params={"kinds": kind, "limit": 200})
            assert found.status_code == 200, found.text
            yield from found.json()["rows"]


def wait_for(served: Served, user: str, kind: str) -> dict[str, Any]:
    """Return the first row of a kind in a user's log, when it is there."""
    params: dict[str, Any] = {"user": user, "kind": kind, "after": 0}
    with httpx.stream("GET", f"{served.url}/api/v1/events", params=params, timeout=100) as answer:
        told = next(line for line in answer.iter_lines() if line.startswith("data: "))
    row: dict[str, Any] = json.loads(told.removeprefix("data: "))
    return row


def heard(served: Served, user: str) -> list[str]:
    """Return the stored messages of a user."""
    return [row["text"] for row in Talk.rows(served, user, "heard")]


def said(served: Served, user: str) -> list[str]:
    """Return the stored answers to a user."""
    return [row["text"] for row in Talk.rows(served, user, "said")]
