"""The contest with a person's settings: talks played by coach and plain agent, judged blind, each step kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from mindstream import chance
from mindstream.coach.contest.judge import Vote, vote
from mindstream.coach.contest.play import COACH, PLAIN, Contest
from mindstream.coach.contest.report import summarise
from mindstream.coach.contest.talks import Played, Script, read_talks
from mindstream.coach.packs.load import SHIPPED, load
from mindstream.coach.packs.pack import Pack
from mindstream.errors import InputError
from mindstream.models.model import Model
from mindstream.models.shorten import estimate_tokens
from mindstream.service.opening import answering
from mindstream.settings import Settings

SIDES = (COACH, PLAIN)
COACH_TURN, PLAIN_TURN = 2_600, 500
"""What a turn takes beside the talk so far, in tokens, as a first estimate."""


@dataclass(frozen=True)
class Terms:
    """What is played, and who judges.

    Attributes:
        talks: the file of talks. out: where all is kept; the same command goes on from there.
        judge: the model that judges; "": people do, on a page.
        window: how many tokens of the talk the plain agent is shown; 0: all.
        constitution: a file with the plain agent's; None: the pack's `plain_agent.md`, else the pack's own.
    """

    talks: Path
    out: Path
    judge: str = ""
    window: int = 0
    constitution: Path | None = None


def opponent(pack: Pack, terms: Terms) -> str:
    """Return the plain agent's constitution."""
    beside = SHIPPED / pack.name / "plain_agent.md"
    path = terms.constitution or (beside if beside.is_file() else None)
    try:
        return path.read_text("utf-8") if path else pack.constitution
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def estimate(scripts: Sequence[Script]) -> dict[str, int]:
    """Estimate the tokens of both sides: the talk so far grows from turn to turn."""
    lengths = [(len(each.lines), sum(estimate_tokens(line.text) + 90 for line in each.lines)) for each in scripts]
    talk = sum(length * turns // 2 for turns, length in lengths)
    turns = sum(turns for turns, _ in lengths)
    return {"turns": turns, COACH: turns * COACH_TURN + 2 * talk, PLAIN: turns * PLAIN_TURN + talk}


async def run_contest(settings: Settings, terms: Terms, told: Callable[[str], None]) -> dict[str, Any]:
    """Play what is not played yet, judge what is not judged, and return the figures.

    Raises:
        InputError: the talks, or the folder, cannot be used.
        ModelError: a model cannot be had; what was done is kept.
    """
    scripts, pack = read_talks(terms.talks), load(settings.pack)
    roles = settings.roles | ({"judge": terms.judge} if terms.judge else {})
    async with answering(settings.model_copy(update={"roles": roles})) as models:

        def say(played: Played) -> None:
            told(f"played {played.id} by {played.side}: {len(played.turns)} turns")

        contest = Contest(models, pack, opponent(pack, terms), terms.out, settings.gate, terms.window, say)
        played = await contest.play(scripts)
        if not terms.judge:
            _write_page(terms.out, scripts, played)
            return summarise(played, _by_people(terms.out))
        votes = await asyncio.gather(*(_judged(models.of("judge"), terms.out, each, played, told) for each in scripts))
    cast = {each.id: [one.preferred for one in found] for each, found in zip(scripts, votes, strict=True)}
    return summarise(played, cast)


async def _judged(
    model: Model, folder: Path, script: Script, played: Sequence[Played], told: Callable[[str], None]
) -> list[Vote]:
    path = folder / f"{script.id}.votes.json"
    if path.is_file():
        return [Vote.model_validate(each) for each in json.loads(path.read_text("utf-8"))]
    texts = {each.side: each.written() for each in played if each.id == script.id}
    orders = (SIDES, SIDES[::-1])
    votes = [await vote(model, (a, texts[a]), (b, texts[b]), script.who) for a, b in orders]
    path.write_text(json.dumps([each.model_dump() for each in votes], ensure_ascii=False, indent=1), "utf-8")
    told(f"judged {script.id}")
    return votes


# People judge on a page that knows no names: each pair once, its order drawn; what they choose is pasted back.


def _write_page(folder: Path, scripts: Sequence[Script], played: Sequence[Played]) -> None:
    texts = {(each.id, each.side): each.written() for each in played}
    pairs = "".join(_pair(script, texts) for script in scripts)
    (folder / "judge.html").write_text(PAGE.replace("{{pairs}}", pairs), "utf-8")


def _order(id_: str) -> tuple[str, ...]:
    return SIDES if chance.fraction("contest", id_) < 0.5 else SIDES[::-1]


def _pair(script: Script, texts: dict[tuple[str, str], str]) -> str:
    columns = "".join(
        f"<article><h3>{name}</h3><pre>{escape(texts[script.id, side])}</pre></article>"
        for name, side in zip("AB", _order(script.id), strict=True)
    )
    choices = "".join(
        f'<label><input type="radio" name="{script.id}" value="{value}"> {label}</label>'
        for value, label in (("A", "A"), ("same", "no difference"), ("B", "B"))
    )
    asked = f"<p>I would rather go back to: {choices}</p>"
    return f"<section><p>{escape(script.who)}</p><div>{columns}</div>{asked}</section>"


def _by_people(folder: Path) -> dict[str, list[str]]:
    """Read what people chose: files `people*.json` in the folder, as the page gives them."""
    cast: dict[str, list[str]] = {}
    for id_, chosen in _chosen(folder):
        cast.setdefault(id_, []).append({"A": _order(id_)[0], "B": _order(id_)[1]}.get(chosen, "same"))
    return cast


def _chosen(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("people*.json")):
        try:
            found = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is not what the page gave: {error}") from None
        if not isinstance(found, dict):
            raise InputError(f"{path} is not what the page gave: a mapping of talks to A, B or same")
        yield from ((str(id_), str(chosen)) for id_, chosen in found.items())


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Which coach?</title><style>
:root{color-scheme:light dark;--line:color-mix(in srgb,currentColor 18%,transparent)}
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}
section{border-top:1px solid var(--line);padding:1.5rem 0}div{display:flex;gap:2rem;flex-wrap:wrap}
article{flex:1 1 22rem;min-width:0}pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}
label{margin-right:1.2rem;white-space:nowrap}textarea{width:100%;height:7rem}
</style><h1>Which coach would this person rather go back to?</h1>
<p>The same person, two coaches. Read both, choose one for each pair. When you are done, save what stands at the end as
people1.json beside this page.</p>
{{pairs}}<section><h2>What you chose</h2><textarea readonly aria-label="What you chose"></textarea></section>
<script>addEventListener("change",()=>{document.querySelector("textarea").value=JSON.stringify(
Object.fromEntries([...document.querySelectorAll("input:checked")].map(e=>[e.name,e.value])),null,1)})</script></html>
"""
