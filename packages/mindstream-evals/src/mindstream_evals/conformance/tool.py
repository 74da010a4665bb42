"""Promises of tools (tools/tool): a spec that providers accept, a text as result, `ToolError` for invalid arguments.

A factory opens a `Trial`: the tool, valid arguments, and invalid arguments.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass

from mindstream.errors import ToolError
from mindstream.models.model import Call
from mindstream.models.schema import find_faults
from mindstream.tools.call import call_tool
from mindstream.tools.tool import Tool
from mindstream_evals.conformance.samples import Promises, expect, expect_error

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that providers accept."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A tool to test. `fit`: valid arguments, as JSON. `misfit`: invalid ones; "": all arguments are valid."""

    tool: Tool
    fit: str
    misfit: str = ""


PROMISES = Promises[Trial]()


@PROMISES.add
async def its_spec_can_be_sent(trial: Trial) -> None:
    spec = trial.tool.spec
    expect(bool(NAME.fullmatch(spec.name)), f"a name that providers accept, not {spec.name!r}")
    expect(bool(spec.description.strip()), "a description that explains to the model what the tool does")
    expect(json.loads(json.dumps(spec.parameters)) == spec.parameters, "a parameter schema that can be sent as JSON")
    expect(spec.parameters.get("type") == "object", 'a parameter schema of type "object"')
    expect(trial.tool.spec == spec, "the same spec each time")


@PROMISES.add
async def its_schema_is_a_json_schema(trial: Trial) -> None:
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(trial.tool.spec.parameters, offline=True)
    except ValueError as error:
        raise AssertionError(f"expected a valid JSON Schema without external references: {error}") from error


@PROMISES.add
async def it_takes_what_fits_and_gives_text(trial: Trial) -> None:
    spec = trial.tool.spec
    faults = find_faults(json.loads(trial.fit), spec.parameters)
    expect(not faults, f"a parameter schema that accepts the valid arguments, not {faults}")
    result = await trial.tool(Call(spec.name, trial.fit))
    expect(isinstance(result, str), f"a str as result, not {type(result).__name__}")


@PROMISES.add
async def what_does_not_fit_is_a_tool_error(trial: Trial) -> None:
    for arguments in filter(None, ('{"a', "[1, 2]", trial.misfit)):
        calling = trial.tool(Call(trial.tool.spec.name, arguments))
        error = await expect_error(ToolError, calling, f"the invalid arguments {arguments} are refused")
        expect(0 < len(str(error)) < 4_000, "an error message of 1 to 3,999 characters")
    if trial.misfit:
        expect(
            bool(find_faults(json.loads(trial.misfit), trial.tool.spec.parameters)),
            "a schema that refuses `misfit`",
        )


@PROMISES.add
async def it_can_be_called_by_several_at_once(trial: Trial) -> None:
    call = Call(trial.tool.spec.name, trial.fit)
    results = await asyncio.gather(*(call_tool(call, [trial.tool]) for _ in range(3)))
    expect(not any(result.failed for result in results), f"three successful concurrent calls, not {results}")


@PROMISES.add
async def it_lets_itself_be_cancelled(trial: Trial) -> None:

    async def calling() -> str:
        return await trial.tool(Call(trial.tool.spec.name, trial.fit))

    task = asyncio.ensure_future(calling())
    await asyncio.sleep(0)
    task.cancel()
    async with asyncio.timeout(10):
        (came,) = await asyncio.gather(task, return_exceptions=True)
    kind = type(came).__name__
    expect(
        isinstance(came, asyncio.CancelledError | str),
        f"CancelledError or a result after a cancellation, not {kind}",
    )
