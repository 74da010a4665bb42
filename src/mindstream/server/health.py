"""/healthz, /readyz, /metrics: for programs that watch the process. They hold no user's data."""

from __future__ import annotations

import resource
from collections import Counter

from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.responses import Response

import mindstream as package
from mindstream.server.problems import Refusal
from mindstream.server.rest import principal_of, problems_of
from mindstream.service.operations.principal import LOCAL, Forbidden
from mindstream.service.operations.runtime import Runtime

TEXT = "text/plain; version=0.0.4"
METRICS_SCOPES = {"admin", "server.admin", "server.read"}


class Health(BaseModel):
    """The process lives."""

    status: str = "ok"
    version: str = package.__version__


class Metrics:
    """Counts requests, by what they ask for and how they were answered."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: Counter[str] = Counter()
        self.going = 0
        self.webhook: Counter[str] = Counter()
        """Posts to the operator's address, that were taken (`delivered`) and that were not (`failed`)."""

    def count(self, method: str, status: int, seconds: float) -> None:
        """Count one request that was answered."""
        self.requests[method, status] += 1
        self.seconds[method] += seconds  # type: ignore[assignment]

    def text(self) -> str:
        """Return all as Prometheus reads it."""
        runtime = self._runtime
        running = Counter(one.state for one in runtime.running.each())
        lines = [
            *_head("mindstream_requests_total", "counter", "Requests that were answered."),
            *(
                f'mindstream_requests_total{{method="{method}",status="{status}"}} {n}'
                for (method, status), n in sorted(self.requests.items())
            ),
            *_head("mindstream_request_seconds_total", "counter", "Seconds that answering took, streams included."),
            *(
                f'mindstream_request_seconds_total{{method="{method}"}} {n:.3f}'
                for method, n in sorted(self.seconds.items())
            ),
            *_gauge("mindstream_requests_going", "Requests that go on.", self.going),
            *_gauge("mindstream_minds_open", "Minds that are open.", len(runtime.minds)),
            *_gauge("mindstream_event_listeners", "Clients that listen to events.", runtime.listeners()),
            *_head("mindstream_operations", "gauge", "Operations, by state."),
            *(f'mindstream_operations{{state="{state}"}} {n}' for state, n in sorted(running.items())),
            *_head("mindstream_webhook_posts_total", "counter", "Posts to the webhook, by what came of them."),
            *(f'mindstream_webhook_posts_total{{result="{result}"}} {n}' for result, n in sorted(self.webhook.items())),
            *_gauge(
                "mindstream_rss_peak_bytes",
                "The most memory that the process held.",
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            ),
        ]
        return "\n".join(lines) + "\n"


def add_health(api: FastAPI, runtime: Runtime, metrics: Metrics) -> None:
    """Add the routes."""

    @api.get("/healthz", tags=["server"], operation_id="server.healthz")
    async def healthz() -> Health:
        """Tell that the process lives."""
        return Health()

    @api.get("/readyz", tags=["server"], operation_id="server.readyz", responses=problems_of("READY"))
    async def readyz() -> Health:
        """Tell that the data folder can be used, and that the server is not about to end."""
        if runtime.is_ending:
            raise Refusal("unavailable", "this server is about to end")
        await runtime.check()
        return Health()

    @api.get(
        "/metrics",
        tags=["server"],
        operation_id="server.metrics",
        response_class=Response,
        responses=problems_of("NEED") | {200: {"content": {TEXT: {"schema": {"type": "string"}}}}},
    )
    async def show(request: Request) -> Response:
        """Return counts and gauges, as Prometheus reads them; for tokens of the tenant `local` (admin, server.read)."""
        principal = principal_of(request.scope)
        if principal.tenant != LOCAL or principal.only or not principal.scopes & METRICS_SCOPES:
            raise Forbidden("metrics are of the whole server: use a token of the tenant `local` with `server.read`")
        return Response(metrics.text(), media_type=TEXT)


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]


def _gauge(name: str, words: str, value: float) -> list[str]:
    return [*_head(name, "gauge", words), f"{name} {value}"]
