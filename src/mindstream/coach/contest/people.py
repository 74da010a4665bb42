"""People as judges: a page that names nobody, each pair once, its order drawn; what they choose is pasted back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from mindstream import chance
from mindstream.coach.contest.plain_agent import OPPONENTS
from mindstream.coach.contest.play import COACH
from mindstream.coach.contest.talks import Played, Script
from mindstream.errors import InputError


def write_page(folder: Path, scripts: Sequence[Script], played: Sequence[Played]) -> None:
    texts = {(each.id, each.side): each.written() for each in played}
    sides = [side for side in dict.fromkeys(each.side for each in played) if side != COACH]
    pairs = "".join(_pair(script, side, texts) for script in scripts for side in sides)
    (folder / "judge.html").write_text(PAGE.replace("{{pairs}}", pairs), "utf-8")


def _order(id_: str, side: str) -> tuple[str, str]:
    return (COACH, side) if chance.fraction("contest", id_, side) < 0.5 else (side, COACH)


def _hidden(side: str) -> str:
    """Name an opponent so that whoever judges does not know which it is."""
    return f"{chance.fraction('contest', side):.6f}"[2:]


def _pair(script: Script, side: str, texts: dict[tuple[str, str], str]) -> str:
    columns = "".join(
        f"<article><h3>{name}</h3><pre>{escape(texts[script.id, each])}</pre></article>"
        for name, each in zip("AB", _order(script.id, side), strict=True)
    )
    choices = "".join(
        f'<label><input type="radio" name="{script.id}/{_hidden(side)}" value="{value}"> {label}</label>'
        for value, label in (("A", "A"), ("same", "no difference"), ("B", "B"))
    )
    asked = f"<p>I would rather go back to: {choices}</p>"
    return f"<section><p>{escape(script.who)}</p><div>{columns}</div>{asked}</section>"


def by_people(folder: Path) -> dict[str, dict[str, list[str]]]:
    """Read what people chose, by opponent and talk: files `people*.json` in the folder, as the page gives them."""
    cast: dict[str, dict[str, list[str]]] = {}
    sides = {_hidden(side): side for side in OPPONENTS}
    for pair, chosen in _chosen(folder):
        id_, _, hidden = pair.partition("/")
        if side := sides.get(hidden):
            preferred = dict(zip("AB", _order(id_, side), strict=True)).get(chosen, "same")
            cast.setdefault(side, {}).setdefault(id_, []).append(preferred)
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
