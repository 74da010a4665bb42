"""`mindstream memory policy`: show or set how a memory recalls and whether it decays."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import JsonValue

from mindstream.cli.shell.flags import AsJson, command, group, switch
from mindstream.cli.shell.output import print_json, say
from mindstream.clock import DAY_S, HOUR_S
from mindstream.json_values import JsonObject
from mindstream.log.events import PolicySet
from mindstream.memory import forgetting_curve
from mindstream.memory.forgetting_curve import Strength
from mindstream.memory.policy import own_policy, parse_settings, read_policy
from mindstream.memory.store.store import Entry
from mindstream.service.calling import open_user_memory
from mindstream.service.memory import policy_given
from mindstream.settings import Chosen

app = group()
MEANS = {
    "retention": "keep: nothing is archived; decay: recall and sleep archive unused records",
    "reranker": "the reranker of recall results: none, model, cross:NAME",
    "reranked": "number of results that the reranker gets",
    "returned": "number of memories that recall returns in a life (tool R)",
    "drawn": "number of records that a sleep selects",
    "first_s": "T at level 0, in seconds (T: minimum time between two returns that raise a level)",
    "base": "factor by which T grows with each level",
    "cap_s": "largest T, in seconds; a record that reaches it is lasting",
    "passed_over_s": "seconds since its last return after which a record that is found but not returned loses a level",
    "asleep_s": "seconds since its last return after which a record that sleep selects loses a level",
}
NOTES = """The settings of the process that opens a memory ([memory] in the settings file,
MINDSTREAM_MEMORY='{"base": 3}', --reranker) override those of the memory. A change
applies when the memory is opened next. `mindstream memory fit` shows what other
settings would have kept."""


@command(
    app,
    "data user reranker",
    "mindstream memory policy --user ann",
    "mindstream memory policy retention=decay",
    "mindstream memory policy base=3 cap_s=259200 --user ann",
    notes=NOTES,
)
async def policy(
    chosen: Chosen,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="A setting of this memory, and its new value.")
    ] = None,
    reset: Annotated[bool, switch("--reset", "Remove all settings that were set for this memory.")] = False,
    json: AsJson = False,
) -> None:
    """Show or change the settings of a memory: how it recalls, and whether unused records are archived.

    Retention `keep` (the default) archives nothing; `decay` archives unused records, by rules with the constants shown.
    """
    given = policy_given(chosen.settings)
    wanted = parse_settings(words or ())
    async with open_user_memory(chosen.settings, new=bool(wanted), own=bool(wanted or reset)) as opened:
        own = {} if reset else dict(await own_policy(opened.store, opened.key))
        if wanted or reset:
            own |= wanted
            read_policy(own)  # raises an error before anything is written
            await opened.commit(Entry(PolicySet(policy=own), opened.name))
        kept = read_policy(own, given)
    rows = [_row(name, value, own, given, chosen) for name, value in kept.model_dump().items()]
    if json:
        print_json(*rows)
        return
    for row in rows:
        say(f"{row['name']:14} {_value(row['value']):>10}  {row['from']:22} {row['means']}")
    say("\n" + "\n".join(describe_laws(kept.laws)))
    if kept.laws.keeps_all:
        say("retention=keep: nothing loses a level, and nothing is archived unless you ask")


def _row(name: str, value: JsonValue, own: JsonObject, given: JsonObject, chosen: Chosen) -> JsonObject:
    where = chosen.origins.get("reranker" if name == "reranker" and chosen.settings.reranker else "memory", "")
    origin = where if name in given else "this memory" if name in own else "default"
    if name in given and name in own and own[name] != given[name]:
        origin += f", over its own {own[name]}"
    return {"name": name, "value": value, "from": origin, "means": MEANS[name]}


def _value(value: JsonValue) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value or "none")


def describe_laws(laws: Strength) -> list[str]:
    """Return lines that explain the constants."""
    steps = ", ".join(describe_span(laws.interval_s(level)) for level in range(laws.lasting_level))
    earliest = describe_span(forgetting_curve.rehearsals(laws)[-1])
    return [
        f"T of each level: {steps}; lasting at level {laws.lasting_level}, after {laws.lasting_level} returns in at"
        f" least {earliest}",
        f"not returned for {describe_span(laws.passed_over_s)}: a level is lost when it is passed over; for"
        f" {describe_span(laws.asleep_s)}: when a sleep draws it",
    ]


def describe_span(seconds: float) -> str:
    """Return a duration: 90 minutes, 16 hours, 30 days."""
    if seconds >= 2 * DAY_S:
        return f"{seconds / DAY_S:.3g} days"
    return f"{seconds / HOUR_S:.3g} hours" if seconds >= 2 * HOUR_S else f"{seconds / 60:.3g} minutes"
