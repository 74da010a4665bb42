"""Operations on the house itself: whose minds there are, and who answers."""

from __future__ import annotations

from mindstream.log.names import id_of
from mindstream.models.roles import DEFAULT
from mindstream.models.rules import Rules
from mindstream.service.operations.house import House
from mindstream.service.operations.shapes import NoQuestion, Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import Who


class UserList(Reply):
    """The tenant's users of whom anything is kept, by name."""

    users: list[str]


class Answers(Reply):
    """Who answers in the roles that have no model of their own; `stand_ins`: no model does, rules stand in.

    `packs`: who can be talked to; `pack`: the one that the operator has chosen.
    """

    model: str
    stand_ins: bool
    roles: dict[str, str]
    packs: list[str]
    pack: str


@operation("people.users", "read", "GET /users")
async def users(house: House, who: Who, ask: NoQuestion) -> UserList:  # noqa: ARG001
    """List the users of whom anything is kept."""
    if who.only:
        return UserList(users=[who.only])
    streams = await house.ground(who).store.minds()
    return UserList(users=sorted(filter(None, (id_of(key, "user") for key in streams))))


@operation("people.answers", "read", "GET /answers")
async def answers(house: House, who: Who, ask: NoQuestion) -> Answers:  # noqa: ARG001
    """Say who answers here: a model by its name, or what stands in for one."""
    named = house.models.names
    default = named.get(DEFAULT, Rules.name)
    return Answers(
        model=default,
        stand_ins=set(named.values()) <= {Rules.name},
        roles={role: name for role, name in named.items() if role != DEFAULT},
        packs=house.speaker_names(),
        pack=house.own_speaker,
    )
