"""Who one is by now: drawn from memory with the new day, and after each reflection (Park 2023, appendix A)."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.memory.store.record import Record
from mindstream.town.events import IdentityRenewed
from mindstream.town.prompts.paper.renew_identity import RenewIdentity
from mindstream.town.residents.turn import ResidentTurn

ASKED = ("{who}'s core characteristics", "{who}'s current daily occupation", "How {who} feels about recent progress")
"""What is asked of memory, each by itself."""
EACH = 6


async def renew_identity(turn: ResidentTurn, news: Sequence[Record] = ()) -> None:
    """Draw anew who a resident is; what it will plan and say from now on goes by it.

    Args:
        news: what it has thought in this very step.
    """
    recalled = [each for asked in ASKED for each in await turn.recall(asked.format(who=turn.name), EACH)]
    records = list({record.id: record for record in (*news, *(each.record for each in recalled))}.values())
    person = turn.person
    fixed = "\n".join(filter(None, (f"{person.name}, {person.age}" if person.age else person.name, person.innate)))
    reply = await turn.ask(
        RenewIdentity(
            who=turn.name,
            person=fixed,
            before=turn.state.summary,
            date=turn.date,
            memories=tuple(dict.fromkeys(record.text for record in records if "plan" not in record.keywords)),
        )
    )
    evidence = tuple(record.id for record in records)
    turn.write(IdentityRenewed(step=turn.step, summary=reply.summary.strip(), evidence=evidence))
