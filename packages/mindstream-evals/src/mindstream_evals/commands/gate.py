"""`mindstream gate`: statistics of gate decisions."""

from __future__ import annotations

import sys

from mindstream.cli.shell.flags import AsJson, OneUser, command, group
from mindstream.cli.shell.output import print_json, print_table, say
from mindstream.coach.packs.load import load
from mindstream.service.calling import open_user_memory, require_known
from mindstream.settings import Settings
from mindstream_evals.gate_curve import gate_curve, gate_report, thought_turns

app = group("Measure the gates, which decide when the talker waits for the reasoner.")
SHARES = (
    ("wait_rate", "waited"),
    ("waited_for_nothing", "for nothing"),
    ("spoke_too_soon", "too soon"),
    ("regret", "regret"),
    ("avoided", "avoided"),
    ("useless_calls", "useless"),
)
MEANING = """\
waited: share of all turns whose answer waited for the reasoner
avoided: share of all turns that did not wake the reasoner
for nothing: share of the judged turns whose answer waited, although the thought was not needed
too soon: share of the judged turns whose answer did not wait, although the thought was needed
regret: share of the judged turns that waited for nothing or answered too soon
useless: share of the judged turns in which the thought changed nothing"""

STALE = """\
stale: share of the turns whose answer needed the thought and was given without it
for nothing: share of the turns that waited for a thought that was not needed"""


@command(app, "data user", "mindstream gate report --user ann")
async def report(settings: Settings, user: OneUser = None, json: AsJson = False) -> None:
    """Show how often each gate (see `chat --gate`) let the talker wait for the reasoner, and how often wrongly.

    The report compares the gate's decision for each utterance with the reasoner's later result; both are in the log.
    """
    async with open_user_memory(settings) as opened:
        found = await gate_report(opened.store, opened.key if user else None)
        if user and not found:
            await require_known(opened)
    if json:
        print_json(*(each.model_dump(mode="json") for each in found))
    elif not found:
        say(f"no decision of a gate is logged{f' for {user}' if user else ''} yet", sys.stderr)
    else:
        rows = [
            (each.gate, f"{each.turns:,}", f"{each.judged:,}", *(f"{getattr(each, name):.0%}" for name, _ in SHARES))
            for each in found
        ]
        print_table(("gate", "turns", "judged", *(title for _, title in SHARES)), rows)
        say(f"\n{MEANING}")


@command(app, "data user pack", "mindstream gate curve --user ann")
async def curve(settings: Settings, user: OneUser = None, json: AsJson = False) -> None:
    """Compute what other rules for waiting would have cost in the logged conversations: stale answers, seconds, tokens.

    An answer is stale if it needed the reasoner's thought and was given without it. Uses only the log: whether each
    thought was needed, and how long it took.
    """
    waiting = [phase.name for phase in load(settings.pack).phases if phase.waits]
    async with open_user_memory(settings) as opened:
        found = gate_curve(await thought_turns(opened.store, opened.key if user else None), waiting)
        if user and not found:
            await require_known(opened)
    if json:
        print_json(*(each.model_dump(mode="json") for each in found))
    elif not found:
        say(f"no thought is logged{f' for {user}' if user else ''} yet", sys.stderr)
    else:
        rows = [
            (
                each.rule,
                f"{each.wait_rate:.0%}",
                f"{each.stale:.0%}",
                f"{each.for_nothing:.0%}",
                f"{each.seconds:.1f}",
                f"{each.tokens:,}",
            )
            for each in found
        ]
        print_table(("rule", "waited", "stale", "for nothing", "seconds a turn", "tokens a turn"), rows)
        say(f"\n{STALE}")
