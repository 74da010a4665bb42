"""The commands of a town: what they share, and what to type instead of a word that is none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mindstream.cli.shell.flags import flag, group, word

INSTEAD = {
    "list": "places lists what there is, status who lives there; packs lists the towns that are shipped",
    "people": "status says who is where, status --resident NAME what somebody has in mind",
    "residents": "status says who is where, status --resident NAME what somebody has in mind",
    "objects": "places lists them",
    "map": "places lists what there is, replay draws the map",
    "show": "status says who is where, status --resident NAME what somebody has in mind, replay draws it",
    "watch": "run -v tells what happens while it lives, replay plays what happened",
    "play": "replay plays what happened",
    "start": "run lets it live",
    "go": "run lets it live",
    "create": "new begins one",
    "init": "new begins one",
    "ask": "interview asks somebody something",
    "log": "timeline tells what somebody did, export --journal FILE writes all that happened",
    "delete": "a town is its folder: remove that",
    "remove": "a town is its folder: remove that",
}
"""Words that people try, and the commands that do it."""


class TownGroup(TyperGroup):
    """The commands of a town, which know what else people call them."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is named.

        Raises:
            TyperException: there is none.
        """
        word = args[0]
        if word not in self.commands and word in INSTEAD:
            raise _mistake(f"there is no command {word!r}: {INSTEAD[word]}", ctx)
        if word not in self.commands and Path(word).is_dir():
            raise _mistake(f"{word!r} is a folder: mindstream town status --data {word}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if not any(each == "--data" or each.startswith("--data=") for each in rest):
            _check_folder(name, command, rest, ctx)
        return name, command, rest


def _check_folder(name: str | None, command: Any, words: list[str], ctx: Any) -> None:
    """Refuse one word too many that is a folder, as a town's would be."""
    taken = sum(each.param_type_name == "argument" for each in getattr(command, "params", ()))
    given = [each for each in words if not each.startswith("-")]
    if len(given) > taken and given[-1] and (Path(given[-1]) / "mindstream.db").is_file() and not _is_value(words):
        raise _mistake(f"a town's folder is named by --data: mindstream town {name} --data {given[-1]}", ctx)


def _is_value(words: list[str]) -> bool:
    """Tell whether the last word belongs to a flag."""
    return len(words) > 1 and words[-2].startswith("-")


def _mistake(text: str, ctx: Any) -> typer.TyperException:
    error = typer.TyperException(text)
    error.ctx = ctx  # type: ignore[attr-defined]
    return error


app = group(
    "A town of residents who perceive, remember, plan, talk and reflect: let one live, look into it.\n\n"
    "A town is a data folder. Rules think for its residents until you name a model. "
    "Begin with new, then run, then status.",
    TownGroup,
)
Seed = Annotated[int, flag("N", "Start of the random numbers; the same seed gives the same days.", "--seed")]
PROFILE = "Change a constant, as vision=4; compat: behave as the published code; repeatable."
ProfileOf = Annotated[list[str] | None, flag("KEY=VALUE", PROFILE, "--profile")]
MODEL = "The model that thinks for the residents [rules]."
ROLE = "Who thinks in one role: planner, decider, talker, reasoner, importance; repeatable."
Name = Annotated[str, word("NAME", "A resident; the first name is enough.")]
At = Annotated[str, flag("TIME", 'When: "Feb 13 10:00", "day 2", "yesterday 10am" [now].', "--at")]
