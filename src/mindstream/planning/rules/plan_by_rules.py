"""The rule of `MakePlan`: plans what a small grammar reads, and says plainly when it cannot.

Tools are known by their names: `calculator`, `extract`, `compare` as they come with mindstream; what searches is
the first of `SEARCHES`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from mindstream.models.prompt import rule
from mindstream.planning.make_plan import MakePlan
from mindstream.planning.rules.arithmetic import read_arithmetic
from mindstream.planning.rules.chain import Chain, read_question
from mindstream.planning.rules.comparison import read_comparison
from mindstream.planning.rules.story import read_story
from mindstream.planning.rules.story_zh import read_chinese_story
from mindstream.planning.rules.word_problem import read_word_problem
from mindstream.planning.rules.word_problem_zh import read_chinese_problem

SEARCHES = ("search_documents", "web_search", "search", "wikipedia", "recall")
CANNOT = (
    "Without a model only these are planned: formulas, word problems in which every quantity is named, the X of the Y,"
    " and comparisons of two. This task is none of them, as far as rules can read it."
)
LONGEST_STORY = 2_000
PROBLEMS = (read_word_problem, read_chinese_problem, read_story, read_chinese_story)
LACKING = {"search": "a tool that searches (documents:DIR, web, wikipedia or recall)"}


@dataclass
class _Draft:
    """A plan while it is written; `lacks`: tools that it would need."""

    tools: dict[str, str]
    lines: list[str] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)

    def add(self, why: str, tool: str, **arguments: object) -> str:
        """Write a step, and return how later ones name what it finds."""
        name = self.tools.get(tool, "")
        if not name and tool not in self.lacks:
            self.lacks.append(tool)
        id = f"#E{len(self.lines) + 1}"
        given = (
            ", ".join(map(str, arguments.values()))
            if len(arguments) == 1
            else json.dumps(arguments, ensure_ascii=False)
        )
        self.lines.append(f"Plan: {why}\n{id} = {name}[{given}]")
        return id

    def text(self) -> str:
        if self.lacks:
            lacks = " and ".join(LACKING.get(tool, f"the tool {tool}") for tool in self.lacks)
            return f"Rules can plan this, but need {lacks}."
        return "\n".join(self.lines)


@rule(MakePlan)
def plan_by_rules(ask: MakePlan) -> str:
    """Write the plan of what the grammar reads; else say that it reads nothing."""
    task = re.sub(r"[\[\]［］【】#＃\s]+", " ", ask.task).strip()
    draft = _Draft(_known(ask.tools))
    if formula := read_arithmetic(task):
        draft.add("Work out the formula.", "calculator", expression=formula)
    elif equations := _read_problem(task):
        draft.add("Solve what is said as equations; the last is what is asked.", "calculator", expression=equations)
    elif comparison := read_comparison(task):
        values = [_follow(draft, chain) for chain in (comparison.first, comparison.second)]
        draft.add("Compare the two.", "compare", which=comparison.which, names=comparison.names, values=values)
    elif chain := read_question(task):
        _follow(draft, chain)
    return draft.text() or CANNOT


def _read_problem(task: str) -> str | None:
    """Return equations of what two or more have, else the formula of a story of one; nobody tells a longer one."""
    if len(task) > LONGEST_STORY:
        return None
    return next((found for read in PROBLEMS if (found := read(task))), None)


def _follow(draft: _Draft, chain: Chain) -> str:
    """Write the steps along a chain: search, then extract, for each relation."""
    thing = chain.thing
    for relation in chain.relations:
        passages = draft.add(f"Look up {thing}: {relation}.", "search", query=_query(thing, relation))
        thing = draft.add("Find in it what is stated.", "extract", what=relation, of=thing, text=passages)
    return thing


def _query(thing: str, relation: str) -> str:
    asked, _, words = relation.partition(" ")
    if not relation.isascii():
        return f"{thing}的{relation}"
    return f"{thing} {words}" if asked in ("who", "where", "when") else f"{relation} of {thing}"


def _known(lines: tuple[str, ...]) -> dict[str, str]:
    """Return the tools' names by what they are for."""
    names = {name.casefold(): name for name in (line.partition("[")[0].strip() for line in lines)}
    known = {kind: names[kind] for kind in ("calculator", "extract", "compare") if kind in names}
    search = next((names[name] for name in SEARCHES if name in names), "")
    return known | ({"search": search} if search else {})
