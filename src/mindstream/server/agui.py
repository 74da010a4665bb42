"""Write an answer as AG-UI events (docs.ag-ui.com): a run with a streamed message, tool calls and changes of beliefs;
other rows as CUSTOM events."""

from __future__ import annotations

import json

from mindstream.clock import Moment
from mindstream.log.events import (
    BeliefChanged,
    FollowUp,
    Heard,
    Logged,
    Observed,
    Piece,
    Said,
    ToolCalled,
)
from mindstream.server.problems import problem_of

PREFIX = b"data: "


class AguiWriter:
    """Writes the events of one run: a user's message and its answer."""

    def __init__(self) -> None:
        self._thread = self._run = ""
        self._message = ""

    def write(self, row: Logged) -> bytes:
        """Return a row of the log as AG-UI events, encoded as server-sent events."""
        event = row.event
        if isinstance(event, Heard):
            self._thread, self._run = event.session, str(row.seq)
            return self._event("RUN_STARTED", row.at, threadId=self._thread, runId=self._run) + self._custom(row)
        if isinstance(event, Piece):
            return self._begin(row.at) + self._event(
                "TEXT_MESSAGE_CONTENT", row.at, messageId=self._message, delta=event.text
            )
        if isinstance(event, Said | FollowUp):
            return self._said(row, event.text)
        if isinstance(event, ToolCalled):
            call = event.id or str(row.seq)
            return (
                self._event("TOOL_CALL_START", row.at, toolCallId=call, toolCallName=event.tool)
                + self._event("TOOL_CALL_ARGS", row.at, toolCallId=call, delta=event.arguments)
                + self._event("TOOL_CALL_END", row.at, toolCallId=call)
            )
        if isinstance(event, Observed):
            call = event.id or str(row.seq)
            return self._event(
                "TOOL_CALL_RESULT", row.at, messageId=str(row.seq), toolCallId=call, content=event.text, role="tool"
            )
        if isinstance(event, BeliefChanged):
            delta = [
                {"op": "add", "path": f"/{_pointer(event.slot)}/{_pointer(name)}", "value": value}
                for name, value in event.patch.items()
            ]
            return self._event("STATE_DELTA", row.at, delta=delta)
        return self._custom(row)

    def finish(self) -> bytes:
        """Return the events that end the run."""
        return self._end(None) + self._event("RUN_FINISHED", None, threadId=self._thread, runId=self._run)

    def fail(self, error: BaseException) -> bytes:
        """Return the events that end a run with an error."""
        found, _ = problem_of(error)
        return self._end(None) + self._event("RUN_ERROR", None, message=found.detail or found.title, code=found.type)

    def _said(self, row: Logged, text: str) -> bytes:
        """Return the events that end the message. If no part of the message was sent, they include the whole text."""
        whole = b""
        if not self._message:
            whole = self._begin(row.at)
            whole += self._event("TEXT_MESSAGE_CONTENT", row.at, messageId=self._message, delta=text)
        return whole + self._end(row.at) + self._custom(row)

    def _begin(self, at: Moment) -> bytes:
        if self._message:
            return b""
        self._message = f"{self._run or at}-answer"
        return self._event("TEXT_MESSAGE_START", at, messageId=self._message, role="assistant")

    def _end(self, at: Moment | None) -> bytes:
        if not self._message:
            return b""
        message, self._message = self._message, ""
        return self._event("TEXT_MESSAGE_END", at, messageId=message)

    def _custom(self, row: Logged) -> bytes:
        return self._event("CUSTOM", row.at, name=f"mindstream.{row.event.kind}", value=row.row())

    @staticmethod
    def _event(kind: str, at: Moment | None, **values: object) -> bytes:
        fields = {"type": kind, **({"timestamp": int(at * 1000)} if at is not None else {}), **values}
        return PREFIX + json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n\n"


def _pointer(part: str) -> str:
    """Return a name escaped as a part of a JSON pointer (RFC 6901)."""
    return part.replace("~", "~0").replace("/", "~1")
