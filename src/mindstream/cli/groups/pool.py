"""`mindstream pool`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mindstream.cli.flags import AsJson, Data, Embedder, Source, Target, Yes, choose, group, settings

pool = group("Share exemplars among agents: pools, their rubrics, who may read what.")

Name = Annotated[str, typer.Argument(metavar="POOL", help="The pool.")]
Me = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Who you are in the pool [you].")]
Scorer = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Who drafts and grades [rules].")]
Writer = Annotated[str, typer.Option("--writer", metavar="NAME", help="Offer them as this agent, to be graded.")]


@pool.command(
    epilog="\b\nExamples:\n  mindstream pool create verse --domain 'limericks and sonnets'\n"
    "  mindstream pool create plans --member ann --member ben --private"
)
def create(
    name: Name,
    domain: Annotated[str, typer.Option(metavar="WORDS", help="What its exemplars are about [its name].")] = "",
    member: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these write and recall, and you; repeatable.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Nobody reads what a member writes until it says so.")
    ] = False,
    form: Annotated[
        Literal["composed", "bare"],
        typer.Option(help="What is embedded: the prompt with its examples, or the query.", show_default=True),
    ] = "composed",
    data: Data = None,
    user: Me = None,
    json: AsJson = False,
) -> int:
    """Create a pool; it is yours."""
    from mindstream.cli import pools

    return pools.create(settings(data, user), name, domain, member or (), not private, form, json)


@pool.command(
    epilog="\b\nExamples:\n  mindstream pool rubric verse --draft rubric.toml --model openai:gpt-5-mini\n"
    "  mindstream pool rubric verse --freeze rubric.toml\n  mindstream pool rubric verse"
)
def rubric(
    name: Name,
    draft: Annotated[Path | None, typer.Option(metavar="FILE", help="Have one drafted into a file.")] = None,
    freeze: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Freeze the one in a file, as you reviewed it.")
    ] = None,
    model: Scorer = None,
    data: Data = None,
    user: Me = None,
    json: AsJson = False,
) -> int:
    """Draft a rubric, freeze it, or show the one that is frozen.

    A frozen rubric never changes: another one is another version, and each pair names the one that it was graded by.
    """
    from mindstream.cli import pools

    return pools.rubric(settings(data, user, model=model), name, draft, freeze, json)


@pool.command(
    epilog="\b\nExamples:\n  mindstream pool add verse --query 'A couplet on tea' --answer 'Tea in the cup, …'\n"
    "  mindstream pool add verse --file pairs.jsonl --writer ann\n"
    "  mindstream pool add verse --answers poems.txt --model openai:gpt-5-mini"
)
def add(
    name: Name,
    query: Annotated[str, typer.Option(metavar="WORDS", help="The question.")] = "",
    answer: Annotated[str, typer.Option(metavar="WORDS", help="Its answer.")] = "",
    file: Annotated[Path | None, typer.Option(metavar="FILE", help="Pairs, as `pool export` writes them.")] = None,
    answers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Answers, a line of --- between them; a model drafts the questions."),
    ] = None,
    writer: Writer = "",
    model: Scorer = None,
    data: Data = None,
    user: Me = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Lay pairs in by hand, or offer them as an agent.

    What you lay in is trusted, and others are measured by it. Exit code 1 where something that was offered is rejected.
    """
    from mindstream.cli import pools

    given = pools.Given(query, answer, file, answers)
    return pools.add(settings(data, user, embedder, model), name, given, writer, json)


@pool.command(epilog="\b\nExample:\n  mindstream pool recall verse 'a couplet on rain' -k 2 --user ann")
def recall(
    name: Name,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What is to be answered.")],
    k: Annotated[int, typer.Option("-k", min=0, max=64, metavar="N", help="How many shots.", show_default=True)] = 3,
    data: Data = None,
    user: Me = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Print the prompt that a query gets: the best exemplars that you may read, the query last."""
    from mindstream.cli import pools

    return pools.recall(settings(data, user, embedder), name, query, k, json)


@pool.command(epilog="\b\nExample:\n  mindstream pool train verse")
def train(name: Name, data: Data = None, user: Me = None, embedder: Embedder = None, json: AsJson = False) -> int:
    """Have the retriever learn from all of the pool, now.

    It learns from each admission in any case; this weighs all of it anew, and begins anew where the embedder is another
    one. Stopped by Ctrl-C, it keeps the last version that held.
    """
    from mindstream.cli import pool_learning

    return pool_learning.train(settings(data, user, embedder), name, json)


@pool.command(epilog="\b\nExample:\n  mindstream pool curve verse --svg curve.svg")
def curve(
    name: Name,
    form: Annotated[
        Literal["composed", "bare"] | None, typer.Option(help="What is embedded [both, where they differ].")
    ] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it there, too.")] = None,
    data: Data = None,
    user: Me = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Show how well the pool does at each size, the best size, and what learning gains as it grows.

    Pairs of the pool that the retriever was not trained on are asked for three shots, and how near the shots' answers
    are to theirs counts: half ROUGE-L, half the cosine.
    """
    from mindstream.cli import pool_learning

    return pool_learning.curve(settings(data, user, embedder), name, form, svg, json)


@pool.command(epilog="\b\nExample:\n  mindstream pool trim verse --capacity best")
def trim(
    name: Name,
    capacity: Annotated[str, typer.Option(metavar="N|best", help="How many stay; best: as `pool curve` says.")],
    yes: Yes = False,
    data: Data = None,
    user: Me = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Let go of what is least worth keeping, by grade, use and likeness; what you laid in stays."""
    from mindstream.cli import pool_learning

    return pool_learning.trim(settings(data, user, embedder), name, capacity, yes, json)


@pool.command(epilog="\b\nExample:\n  mindstream pool why verse dnkxxgi4")
def why(
    name: Name,
    id: Annotated[str, typer.Argument(metavar="ID", help="An exemplar's id, or how it begins.")],
    data: Data = None,
    user: Me = None,
    json: AsJson = False,
) -> int:
    """Say what became of a pair: who wrote it, how it was graded, why it is served or not."""
    from mindstream.cli import pools

    return pools.why(settings(data, user), name, id, json)


@pool.command(
    epilog="\b\nExamples:\n  mindstream pool grant verse ben cy --user ann\n"
    "  mindstream pool grant verse --private --user ann"
)
def grant(
    name: Name,
    reader: Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="Who may read what you write.")] = None,
    everyone: Annotated[bool, typer.Option("--everyone", help="All members may.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Nobody else may.")] = False,
    data: Data = None,
    user: Me = None,
) -> int:
    """Say who may read what you write, from now on and what is there already.

    Whoever is not named any more is served neither that nor what was drawn from it, from the next recall on.
    """
    from mindstream.cli import pools

    return pools.grant(settings(data, user), name, reader or (), private, everyone)


@pool.command(
    epilog="\b\nExamples:\n  mindstream pool withdraw verse dnkxxgi47ru7lejrzy2xw3i2\n"
    "  mindstream pool withdraw verse --writer ann --because 'planted' --erase"
)
def withdraw(
    name: Name,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID…", help="Exemplars.")] = None,
    writer: Annotated[str, typer.Option(metavar="NAME", help="All that this writer wrote.")] = "",
    because: Annotated[str, typer.Option(metavar="WORDS", help="Why, for the log.")] = "",
    erase: Annotated[bool, typer.Option("--erase", help="Delete their words for good, too.")] = False,
    yes: Yes = False,
    data: Data = None,
    user: Me = None,
) -> int:
    """Withdraw exemplars, and what was drawn from them: your own, or, in your own pool, anybody's."""
    from mindstream.cli import pools

    return pools.withdraw(settings(data, user), name, ids or (), writer, because, erase, yes)


@pool.command(epilog="\b\nExample:\n  mindstream pool export verse pairs.jsonl")
def export(name: Name, file: Target = None, data: Data = None, user: Me = None) -> int:
    """Write what you may read as pairs for fine-tuning, in the usual chat form."""
    from mindstream.cli import pools

    return pools.export(settings(data, user), name, file)


@pool.command("import", epilog="\b\nExample:\n  mindstream pool import verse pairs.jsonl --writer ann")
def import_file(
    name: Name,
    file: Source = None,
    writer: Writer = "",
    model: Scorer = None,
    data: Data = None,
    user: Me = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Take pairs in, as `pool add --file` does; who is said there to have written them is not believed."""
    from mindstream.cli import pools

    given = pools.Given(file=file or Path("-"))
    return pools.add(
        choose({"data": data, "user": user, "embedder": embedder, "model": model}).settings, name, given, writer, json
    )
