"""`mindstream memory evaluate`: answer questions from recalled memories, and from control conditions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast

from mindstream.cli.shell.flags import AsJson, Yes, command, flag, group, names_in, switch
from mindstream.cli.shell.output import cell, print_json, print_table, say
from mindstream.cli.shell.stopping import is_agreed, run_kept
from mindstream.errors import InputError
from mindstream.json_values import JsonObject
from mindstream.settings import Settings
from mindstream.text.words import count_of
from mindstream_evals.memory.evaluate import ARMS, Arm, ArmStanding, AtMost
from mindstream_evals.runs import memory as service
from mindstream_evals.runs.memory import MemoryEvaluated, MemoryWish

app = group()
NOTES = """FILE has the form of LoCoMo, LongMemEval or BEAM, recognized by its structure.
Each conversation is written unchanged into its own memory, without a model.
Then the reader answers each question once for each of --arms: from what memory
recalls and, as controls, from what BM25 alone finds (both within --tokens) and
from the whole conversation (within --whole-tokens). The judge decides accuracy;
without a judge only the overlap of words (F1) is reported. The recall of
evidence is shown too.

Answers and judgements are kept in a file next to FILE (.answers.jsonl), one per
line with the text that was shown: after Ctrl-C, a model error or a limit, the
same command resumes.

Exit code: 0; 1 after a model error or a spent budget; 2 after a mistake;
130 after Ctrl-C."""


@command(
    app,
    "roles fallback patience_s budget_calls budget_tokens budget_usd embedder reranker",
    "mindstream memory evaluate --data locomo10.json --reader openai:gpt-5-mini --judge openai:gpt-5 --dry-run",
    "mindstream memory evaluate --data locomo10.json --reader local --questions 10 --arms memory,bm25",
    notes=NOTES,
    roles="The model for one role: reader, judge, reranker; repeatable.",
)
def evaluate(
    settings: Settings,
    data: Annotated[Path, flag("FILE", "Conversations with questions about them.", "--data")],
    reader: Annotated[str, flag("NAME", "The model that answers the questions [--role reader=NAME].", "--reader")] = "",
    judge: Annotated[
        str, flag("NAME", "The model that judges the answers [--role judge=NAME, else none].", "--judge")
    ] = "",
    tokens: Annotated[
        int, flag("N", "Maximum tokens of the recalled messages in the prompt.", "--tokens", min=50)
    ] = 1500,
    whole_tokens: Annotated[
        int, flag("N", "With --arms whole, the reader gets the conversation, at most its newest N tokens.", min=50)
    ] = 100_000,
    arms: Annotated[
        str,
        flag(
            "A,B",
            "What the reader gets. memory, bm25: the messages that each of them finds; whole: the newest messages, as"
            " many as fit.",
            "--arms",
        ),
    ] = ",".join(ARMS),
    questions: Annotated[int, flag("N", "Number of questions, equally from all types [all].", min=0)] = 0,
    types: Annotated[str, flag("A,B", "Only questions of these types [all].", "--types")] = "",
    seed: Annotated[int, flag("N", "Seed of the random draw of questions.", "--seed")] = 0,
    out: Annotated[Path | None, flag("FILE.jsonl", "Store answers and judgements in this file.", "--out")] = None,
    dry_run: Annotated[bool, switch("--dry-run", "Only show what it would cost.")] = False,
    yes: Yes = False,
    json: AsJson = False,
) -> int:
    """Answer questions about long conversations from recall, and from two controls, and count correct answers."""
    settings = service.with_reader(settings, reader, judge)
    wish = MemoryWish(data, tokens, whole_tokens, _arms(arms), questions, names_in(types), seed, out)
    _, talks = service.read_wish(wish)
    asked, usd = service.estimate(settings, wish, talks)
    if dry_run:
        tell = f"at most {count_of(asked.calls, 'call')}, {asked.tokens_in:,} tokens in and {asked.tokens_out:,} out"
        row: JsonObject = {**asdict(asked), "usd": usd}
        print_json(row) if json else say(f"{tell}; {_price(usd)}; stored answers are not requested again")
        return 0
    if asked.calls and usd != 0 and not yes and not is_agreed(settings, lambda: _at_most(asked, usd)):
        return 0
    return _run(settings, wish, json)


def _arms(text: str) -> tuple[Arm, ...]:
    names = names_in(text)
    if wrong := next((name for name in names if name not in ARMS), "" if names else "nothing"):
        raise InputError(f"--arms: expected one or more of {', '.join(ARMS)}, found {wrong}")
    return cast(tuple[Arm, ...], names)


def _price(usd: float | None) -> str:
    return "its price is not known" if usd is None else f"{usd:,.2f} US dollars at most"


def _at_most(asked: AtMost, usd: float | None) -> str:
    tokens = asked.tokens_in + asked.tokens_out
    return f"at most {count_of(asked.calls, 'call')} and {tokens:,} tokens; {_price(usd)}"


def _run(settings: Settings, wish: MemoryWish, json: bool) -> int:
    return run_kept(
        "answering",
        lambda told: service.evaluate(settings, wish, told),
        f"answers and judgements are stored in {wish.kept_in}",
        lambda found: print_json(as_json(found)) if json else _show(found, wish),
    )


def as_json(found: MemoryEvaluated) -> JsonObject:
    standings = [asdict(each) | {"accuracy": each.accuracy} for each in found.standings]
    return {**asdict(found), "standings": standings}


def _show(found: MemoryEvaluated, wish: MemoryWish) -> None:
    say(
        f"{found.form}: {count_of(found.questions, 'question')} about {count_of(found.talks, 'talk')}, read by"
        f" {found.reader}, " + (f"judged by {found.judge}" if found.judge else "without a judge")
    )
    columns = ("shown", "type", "n", "right", "95 % interval", "F1", "evidence", "tokens", "seconds")
    print_table(columns, [_row(each) for each in found.standings], words=2)
    if any(each.arm == "whole" and each.left for each in found.standings):
        say(f"`whole` shows only the newest {wish.whole_tokens:,} tokens of some conversations")
    if found.unreadable:
        say(f"{count_of(found.unreadable, 'reply').replace('replys', 'replies')} of models could not be parsed")
    say(f"questions, shown texts and answers: {wish.kept_in}")


def _row(each: ArmStanding) -> tuple[str, ...]:
    return (
        each.arm,
        each.type or "all",
        f"{each.answered}",
        cell(each.accuracy, ".3f"),
        f"{each.low:.3f} to {each.high:.3f}" if each.judged else "-",
        cell(each.overlap, ".3f"),
        cell(each.evidence, ".3f"),
        f"{each.tokens:,.0f}",
        f"{each.seconds:.1f}",
    )
