"""`mindstream coach`: compare the coach with a plain agent, and check its predictions."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from mindstream.cli.shell.flags import AsJson, OneUser, command, flag, group, names_in, switch
from mindstream.cli.shell.output import print_json, print_table, say
from mindstream.coach.belief.belief import plan_from, plan_slot
from mindstream.coach.belief.plan import BINS, calibration_of
from mindstream.coach.packs.load import load
from mindstream.errors import InputError
from mindstream.service.calling import open_user_memory, require_known
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream_evals.contest.contest import COACH, OPPONENTS, PLAIN, Terms, estimate, read_talks, run_contest

NOTES = """The file of talks is a JSON list of {"id", "who", "lines": [{"text", "session", "days",
"key"}]}. A line whose session number is higher than that of the line before is
sent "days" days later. The answer to a line with a key is graded against the key.
Opponents are shown the whole conversation (plain), its newest 8,000 tokens
(recent), or the conversation of the day and a summary of the earlier ones
(summary). Without --judge, people judge on the page OUT/judge.html."""
app = group("Evaluate the coach: against a plain agent, and in its predictions.")


@command(
    app,
    "model pack gate patience_s",
    "mindstream coach contest --talks talks.json --model ollama:qwen3 --judge openai:gpt-5",
    "mindstream coach contest --talks talks.json --model local --out played",
    notes=NOTES,
    model="The model that answers on both sides.",
)
async def contest(
    settings: Settings,
    talks: Annotated[Path, flag("FILE", "A JSON file of scripted conversations, with the lines that the user says.")],
    judge: Annotated[
        str,
        flag(
            "MODEL",
            "The model that judges pairs of conversations, blind, in both orders [none: a page on which people judge].",
        ),
    ] = "",
    out: Annotated[
        Path, flag("DIR", "Folder of all results; after an interruption, the same command continues.")
    ] = Path("contest"),
    against: Annotated[
        str, flag("SIDES", f"Opponents of the coach, separated by commas: {', '.join(OPPONENTS)}.")
    ] = PLAIN,
    constitution: Annotated[
        Path | None, flag("FILE", "The constitution (rules) of the plain agent [the one in the pack].")
    ] = None,
    estimate_only: Annotated[bool, switch("--estimate", "Only show what it would cost.")] = False,
    json: AsJson = False,
) -> None:
    """Play scripted conversations with the coach and with plain agents, on the same models, and compare them.

    A model or people judge pairs of conversations with the same script: one by the coach, one by a plain agent.
    """
    expected = estimate(read_talks(talks))
    told = f"{expected['turns']} turns: about {expected[COACH]:,} tokens of the coach, {expected[PLAIN]:,} of the agent"
    if estimate_only:
        print_json(expected) if json else say(told)
        return
    say(told, sys.stderr)
    terms = Terms(talks, out, judge, _opponents(against), constitution)
    roles = settings.roles | ({"judge": judge} if judge else {})
    async with answering(settings.model_copy(update={"roles": roles})) as models:
        found = await run_contest(models, load(settings.pack), terms, lambda line: say(line, sys.stderr), settings.gate)
    if json:
        print_json(found)
        return
    rows = [
        (
            side,
            f"{each['tokens_a_turn']:,}",
            f"{each['cached_at_a_tenth']:,}",
            f"{each['usd_a_turn']:.5f}",
            f"{each['first_s']:.2f}",
            f"{each['right']:.0%} of {each['questions']}" if "right" in each else "",
        )
        for side, each in found.items()
    ]
    print_table(("side", "tokens a turn", "cached at a tenth", "USD a turn", "first word (s)", "right"), rows)
    for side, each in found.items():
        if "preference" in each:
            low, high = each["interval"]
            said = f"{each['preference']:+.2f} (95 %: {low:+.2f} to {high:+.2f}), from -1 to 1"
            say(
                f"\nagainst {side} the coach was preferred in {each['coach_preferred']} of {each['talks']} talks, the"
                f" opponent in {each['coach_worse']}; preference {said}"
            )
    if not judge and not any("preference" in each for each in found.values()):
        say(f"\nopen {out / 'judge.html'}, judge, save the result next to it as people1.json, and repeat the command")


def _opponents(named: str) -> list[str]:
    """Parse the comma-separated names of opponents.

    Raises:
        InputError: a name is unknown.
    """
    sides = list(names_in(named))
    for side in sides:
        if side not in OPPONENTS:
            raise InputError(f"unknown opponent {side!r}; use one of: {', '.join(OPPONENTS)}")
    return sides


@command(app, "data user pack", "mindstream coach calibration", "mindstream coach calibration --user ann")
async def calibration(settings: Settings, user: OneUser = None, json: AsJson = False) -> None:
    """Show how well the coach predicts which steps of their plans users do.

    For each range of predicted probabilities, shows the share of steps that the users reported as done.
    """
    pack = load(settings.pack)
    async with open_user_memory(settings) as opened:
        minds, now = [opened.key] if user else await opened.store.streams(), opened.clock.now()
        plans = [await opened.store.latest(mind, now=now, slot=plan_slot(pack)) for mind in minds]
        if user and not any(plans):
            await require_known(opened)
    found = calibration_of(step for plan in plans for step in plan_from(next(iter(plan), None)).steps)
    if json:
        print_json(asdict(found))
    elif not found.steps:
        say("no step has both a prediction and a report of the user yet", sys.stderr)
    else:
        say(f"steps with a prediction and a report: {found.steps}; Brier score {found.brier:.3f} (a coin: 0.25)\n")
        rows = [
            (f"{low:.1f} to {low + 1 / BINS:.1f}", f"{each.steps}", f"{each.thought:.2f}", f"{each.done:.2f}")
            for low, each in sorted(found.bins.items())
        ]
        print_table(("predicted probability", "steps", "mean", "share done"), rows)
