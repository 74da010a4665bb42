"""Calls of models and tools as spans: what a row of the log says of one."""

from __future__ import annotations

from mindstream.log.events import Logged, ModelCalled
from mindstream.service.traces.told import Told, failure
from mindstream.tracing import genai


def told_call(row: Logged, event: ModelCalled, trace: tuple[str, ...], parent: str | None) -> Told:
    """Tell of a call of a model; its row was written when it had ended."""
    named = genai.model_attributes(event.model)
    told: dict[str, genai.Value] = {
        **named,
        genai.PROMPT: event.prompt,
        "mindstream.role": event.role,
        "mindstream.seq": row.seq,
        genai.INPUT_TOKENS: event.input_tokens,
        genai.OUTPUT_TOKENS: event.output_tokens,
    }
    if event.cached_tokens:
        told[genai.CACHED_TOKENS] = event.cached_tokens
    if event.first_part_s is not None:
        told[genai.FIRST_PART_S] = event.first_part_s
    if event.cost_usd is not None:
        told["mindstream.cost_usd"] = event.cost_usd
    if event.asked:
        told[genai.ASKED] = genai.write_messages(event.messages())
    if event.answered:
        told[genai.ANSWERED] = genai.write_answer(event.answered)
    return Told(
        genai.CHAT,
        trace,
        f"chat {row.seq}",
        parent,
        row.at - event.seconds,
        row.at,
        str(named[genai.MODEL]),
        told,
        failure(event.error),
    )


def tool_attributes(tool: str, arguments: str, id_: str = "") -> dict[str, genai.Value]:
    """Name a call of a tool."""
    told: dict[str, genai.Value] = {genai.TOOL: tool, genai.ARGUMENTS: arguments}
    return told | ({genai.CALL_ID: id_} if id_ else {})
