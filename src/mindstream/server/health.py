"""/healthz, /readyz, /metrics: endpoints for monitoring. They contain no user's data."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Mapping

from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.responses import Response

import mindstream as package
from mindstream.server.admission import principal_of
from mindstream.server.problems import Refusal, problem_responses
from mindstream.service.operations.operation import LOCAL, Forbidden
from mindstream.service.operations.runtime import Runtime

TEXT = "text/plain; version=0.0.4"
METRICS_SCOPES = {"admin", "server.admin", "server.read"}


class Health(BaseModel):
    """The status of a running process."""

    status: str = "ok"
    version: str = package.__version__


class Metrics:
    """The counters of a server.

    Attributes:
        requests: number of answered requests, by method and status. seconds: total seconds spent on answers, by method.
        going: number of running requests.
        webhook: number of webhook posts, by result (`delivered`, `failed`).
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.going = 0
        self.webhook: Counter[str] = Counter()

    def text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        runtime = self._runtime
        running = Counter(one.state for one in runtime.running.each())
        requests = {f'{{method="{method}",status="{status}"}}': n for (method, status), n in self.requests.items()}
        seconds = {f'{{method="{method}"}}': f"{n:.3f}" for method, n in self.seconds.items()}
        operations = {f'{{state="{state}"}}': n for state, n in running.items()}
        posts = {f'{{result="{result}"}}': n for result, n in self.webhook.items()}
        metrics: tuple[tuple[str, str, str, Mapping[str, object]], ...] = (
            ("requests_total", "counter", "Answered requests.", requests),
            ("request_seconds_total", "counter", "Seconds spent on answers, including streams.", seconds),
            ("requests_going", "gauge", "Running requests.", {"": self.going}),
            ("minds_open", "gauge", "Open minds.", {"": len(runtime.minds)}),
            ("event_listeners", "gauge", "Clients that are subscribed to events.", {"": runtime.listeners()}),
            ("operations", "gauge", "Long-running operations, by state.", operations),
            ("webhook_posts_total", "counter", "Posts to the webhook, by result.", posts),
            ("rss_peak_bytes", "gauge", "Peak memory of the process.", {"": _peak_bytes()}),
        )
        lines = []
        for name, kind, words, values in metrics:
            lines += [f"# HELP mindstream_{name} {words}", f"# TYPE mindstream_{name} {kind}"]
            lines += [f"mindstream_{name}{labels} {value}" for labels, value in sorted(values.items())]
        return "\n".join(lines) + "\n"


def _peak_bytes() -> int:
    """Return the peak memory of this process; 0 on Windows."""
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def add_health(api: FastAPI, runtime: Runtime, metrics: Metrics) -> None:
    """Add the routes /healthz, /readyz and /metrics."""

    @api.get("/healthz", tags=["server"], operation_id="server.healthz")
    async def healthz() -> Health:
        """Report that the process is running."""
        return Health()

    @api.get(
        "/readyz", tags=["server"], operation_id="server.readyz", responses=problem_responses("too-many", "unavailable")
    )
    async def readyz() -> Health:
        """Report that the data can be read, and that the server is not shutting down."""
        if runtime.is_ending:
            raise Refusal("unavailable", "this server is shutting down: send the request to another server, or later")
        await runtime.check()
        return Health()

    @api.get(
        "/metrics",
        tags=["server"],
        operation_id="server.metrics",
        response_class=Response,
        responses=problem_responses("unauthenticated", "too-many")
        | {200: {"content": {TEXT: {"schema": {"type": "string"}}}}},
    )
    async def show(request: Request) -> Response:
        """Return metrics in the text format of Prometheus.

        The token must belong to the tenant `local`, be for all its users, and have the scope `admin`,
        `server.admin` or `server.read`.
        """
        principal = principal_of(request.scope)
        if principal.tenant != LOCAL or principal.only or not principal.scopes & METRICS_SCOPES:
            raise Forbidden(
                "metrics cover the whole server: use a token of the tenant `local`, for all users, with the scope"
                " `server.read`"
            )
        return Response(metrics.text(), media_type=TEXT)
