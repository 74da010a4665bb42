"""The description of the API (/openapi.json): what FastAPI says of the routes, with problems written once."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi

from mindstream.server.problems import PROBLEMS, TYPE, Problem

OPENAI = "/v1/"
"""Below this, errors have OpenAI's form (server/chat/errors)."""
ERROR = "openai-error"
BY_STATUS = {str(status): kind for kind, (status, _) in PROBLEMS.items()}


def describe_api(api: FastAPI) -> None:
    """Let an application describe itself so.

    The document is encoded once: to encode it takes several milliseconds, and anybody may request it.
    """
    encoded: dict[str, bytes] = {}

    async def answer(request: Request) -> Response:
        root = request.scope.get("root_path", "").rstrip("/")
        if root not in encoded:
            encoded.clear()  # an application is mounted at one path
            servers = {"servers": [{"url": root}]} if root else {}
            document = {**openapi(), **servers}
            encoded[root] = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        return Response(encoded[root], media_type="application/json")

    api.add_route("/openapi.json", answer, include_in_schema=False)

    def openapi() -> dict[str, Any]:
        if not api.openapi_schema:
            made = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
            api.openapi_schema = _shortened(made)
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]


def _shortened(made: dict[str, Any]) -> dict[str, Any]:
    parts = made.setdefault("components", {})
    parts.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
    parts["responses"] = {
        kind: {
            "description": title,
            "content": {TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for kind, (_, title) in PROBLEMS.items()
    }
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    made["security"] = [{"token": []}, {}]
    parts["responses"][ERROR] = {
        "description": "It went wrong, as OpenAI's API tells it",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
    }
    for name, path in made.get("paths", {}).items():
        is_openai = name.startswith(OPENAI)
        for each in path.values():
            if is_openai:
                each["responses"].pop("422", None)  # it is told as 400
            for status in each.get("responses", {}):
                if status in BY_STATUS and int(status) >= 400:
                    told = ERROR if is_openai else BY_STATUS[status]
                    each["responses"][status] = {"$ref": f"#/components/responses/{told}"}
    return made
