"""`mindstream pool experiment`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mindstream.cli.flags import AsJson, Embedder, choose

EPILOG = """Three studies: zero to three shots; pools of a domain against a single pool of
the same size; the pools while the stream comes in, by fifths. And a control:
exemplars drawn at random, and exemplars with the answers of others, which
must do worse. ROUGE-2, ROUGE-L (Chinese by characters), token_match (greedy
matching over wordllama's token vectors; BERTScore itself with --bertscore).

Without a model rules copy the nearest exemplar's answer: what recall alone is
worth. Nine agents come with the package; --data DIR reads your own, in the
same form (NAME.toml), or the published folders.

\b
Examples:
  mindstream pool experiment
  mindstream pool experiment --agents limerick,riddle --model local --tests 2 --out cells.jsonl
  mindstream pool experiment --models ollama:qwen3,openai:gpt-5-mini --studies shots --json"""


def experiment(
    agents: Annotated[str, typer.Option(metavar="A,B,…", help="Only these agents [all].")] = "",
    agents_from: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Your own agents, or the published pairs.")
    ] = None,
    studies: Annotated[
        str, typer.Option(metavar="A,B,…", help="Which studies.", show_default=True)
    ] = "shots,pools,growth,controls",
    shots: Annotated[
        str, typer.Option(metavar="N,N,…", help="How many exemplars; the most of these elsewhere.", show_default=True)
    ] = "0,1,2,3",
    form: Annotated[
        Literal["both", "composed", "bare"],
        typer.Option(help="What of an exemplar is embedded: with its own examples, or the query.", show_default=True),
    ] = "both",
    tests: Annotated[int, typer.Option(min=0, metavar="N", help="At most so many tests an agent [all].")] = 0,
    seed: Annotated[int, typer.Option(metavar="N", help="In which order the stream comes.", show_default=True)] = 0,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Who answers for all agents [rules].")] = None,
    models: Annotated[str, typer.Option(metavar="A,B,…", help="Who answers, given to the agents in turn.")] = "",
    scorer: Annotated[
        str, typer.Option(metavar="NAME", help="Who grades what streams in.", show_default=True)
    ] = "rules",
    bertscore: Annotated[
        str, typer.Option(metavar="MODEL", help="BERTScore, too, by this model of the hub or folder.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Keep each answer; the same command goes on behind them.")
    ] = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Measure what sharing is worth: the studies of memory sharing (Gao 2024), with any model."""
    from mindstream.cli import pool_experiment
    from mindstream.service.pool_experiment import Wish, split_shots
    from mindstream.sharing.experiment.studies import Design, named_studies

    design = Design(
        named_studies(_names(studies)), split_shots(shots), ("composed", "bare") if form == "both" else (form,),
        tests, seed,
    )  # fmt: skip
    wish = Wish(design, _names(agents), agents_from, _names(models), scorer, bertscore, out)
    return pool_experiment.experiment(choose({"model": model, "embedder": embedder}).settings, wish, json)


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
