"""The group of town commands, and the flags that they share."""

from __future__ import annotations

from typing import Annotated

from mindstream.cli.shell.flags import flag, group, word

app = group(
    "A town of residents who perceive, remember, plan, talk and reflect: run it and inspect it.\n\n"
    "A town is a data folder. Rules decide for its residents until you name a model. "
    "Start with `new`, then `run`, then `status`.",
)
Seed = Annotated[int, flag("N", "Seed of the random numbers; the same seed gives the same days.", "--seed")]
PROFILE = (
    "Change a constant of the town, such as vision=4; with lives=paper and a model, residents decide step by step, as"
    " in Park 2023; repeatable."
)
ProfileOf = Annotated[list[str] | None, flag("KEY=VALUE", PROFILE, "--profile")]
MODEL = "The model that decides and speaks for the residents [rules]."
ROLE = "The model for one role: planner, decider, talker, reasoner, importance; repeatable."
Name = Annotated[str, word("NAME", "A resident; the first name is enough.")]
At = Annotated[str, flag("TIME", 'A time in the town: "Feb 13 10:00", "day 2", "yesterday 10am" [now].', "--at")]
