"""`mindstream pool`: what its commands do."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mindstream.cli import asking, files
from mindstream.cli.clean import say, short
from mindstream.cli.json_lines import print_json
from mindstream.errors import InputError
from mindstream.service import pools
from mindstream.settings import Settings
from mindstream.sharing.admission import Pair
from mindstream.sharing.events import EVERYONE, ExemplarJudged, Form
from mindstream.sharing.pairs_file import export_lines, read_pairs
from mindstream.sharing.rubric import read_rubric
from mindstream.sharing.shots import kshot_text
from mindstream.sharing.why import Explanation, explain
from mindstream.text.counting import count_of

REJECTED = 1


def create(
    settings: Settings, name: str, domain: str, members: Sequence[str], shared: bool, form: Form, json: bool
) -> int:
    """Create a pool."""

    async def run() -> None:
        async with pools.open_pool(settings, name, new=True) as pool:
            await pool.create(
                domain or name, settings.user, members=members or (EVERYONE,), shared=shared, form=form
            )  # fmt: skip

    asyncio.run(run())
    if json:
        print_json({"pool": name, "owner": settings.user, "members": list(members) or [EVERYONE], "shared": shared})
    else:
        say(f"the pool {name} is {settings.user}'s; next: mindstream pool rubric {name} --draft rubric.toml")
    return 0


def rubric(settings: Settings, name: str, draft: Path | None, freeze: Path | None, json: bool) -> int:
    """Draft a rubric into a file, freeze one from a file, or show the one that is frozen."""

    async def run() -> int:
        async with pools.open_pool(settings, name) as pool:
            if freeze is not None:
                found = read_rubric(b"".join(files.read_lines(freeze)).decode("utf-8", "replace"), files.source(freeze))
                version = await pool.freeze_rubric(found, settings.user)
                line = {"pool": name, "version": version, "threshold": found.threshold, "digest": found.digest}
                print_json(line) if json else say(f"version {version} of the rubric is frozen ({found.digest})")
            elif draft is not None:
                async with pools.open_scorer(settings) as scorer:
                    text = (await pools.draft_rubric(pool, scorer, settings.user)).text()
                with files.open_writer(draft) as write:
                    write(text.rstrip("\n"))
                if files.real_file(draft):
                    say(f"review and edit {draft}, then: mindstream pool rubric {name} --freeze {draft}")
            else:
                state = await pool.state()
                if not state.rubrics:
                    raise InputError(f"no rubric is frozen: mindstream pool rubric {name} --draft rubric.toml")
                last = state.rubrics[-1]
                head = {"version": len(state.rubrics), "digest": last.digest}
                print_json({**head, **last.model_dump(mode="json")}) if json else say(last.text())
            return 0

    return asyncio.run(run())


@dataclass(frozen=True)
class Given:
    """Where pairs come from: words, a file of pairs, a file of answers to which questions are drafted."""

    query: str = ""
    answer: str = ""
    file: Path | None = None
    answers: Path | None = None


def add(settings: Settings, name: str, given: Given, writer: str, json: bool) -> int:
    """Lay pairs in, or offer them as a writer."""

    async def run() -> int:
        async with pools.open_pool(settings, name) as pool, pools.open_scorer(settings) as scorer:
            if given.answers is not None:
                texts = b"".join(files.read_lines(given.answers)).decode("utf-8", "replace").split("\n---\n")
                answers = [text.strip() for text in texts if text.strip()]
                pairs = await pools.draft_pairs(pool, scorer, answers, settings.user)
            elif given.file is not None:
                pairs = list(read_pairs(files.read_lines(given.file), files.source(given.file)))
            elif given.query and given.answer:
                pairs = [Pair(given.query, given.answer)]
            else:
                raise InputError("say what is added: --query and --answer, --file PAIRS.jsonl, or --answers FILE")
            added = await pools.add_pairs(pool, scorer, pairs, settings.user, writer)
            for id_ in added.laid_in:
                query = pool.known(id_).exemplar.query if id_ in (await pool.state()).standings else ""
                print_json({"id": id_, "verdict": "admitted", "query": query}) if json else say(
                    f"{id_}  {short(query)}"
                )
            for judged in added.judged:
                print_json(_judged_row(judged)) if json else say(_judged_line(judged))
            if added.known and not json:
                say(
                    f"{count_of(added.known, 'pair')} was there already"
                    if added.known == 1
                    else f"{added.known} pairs were there already"
                )
            return REJECTED if any(each.verdict == "rejected" for each in added.judged) else 0

    return asyncio.run(run())


def recall(settings: Settings, name: str, query: str, k: int, json: bool) -> int:
    """Print the k-shot prompt that a query gets."""

    async def run() -> int:
        async with pools.open_pool(settings, name) as pool:
            found = await pool.recall(query, k, reader=settings.user)
            if not json:
                say(kshot_text(found, query))
                if ranked_by := pools.describe_ranking(pool):
                    say(ranked_by, sys.stderr)
            for each in found if json else ():
                row = {"id": each.id, "query": each.query, "answer": each.answer, "writer": each.writer}
                print_json({**row, "model": each.model, "version": pool.retriever.version})
            return 0

    return asyncio.run(run())


def why(settings: Settings, name: str, id: str, json: bool) -> int:
    """Explain what became of a pair."""

    async def run() -> Explanation:
        async with pools.open_pool(settings, name) as pool:
            return await explain(pool, id, settings.user)

    found = asyncio.run(run())
    exemplar, verdict = found.standing.exemplar, found.standing.verdict
    if json:
        row = {"id": exemplar.id, "writer": exemplar.writer, "model": exemplar.model, "asked_by": exemplar.asked_by}
        row |= {"query": exemplar.query, "answer": exemplar.answer}
        lists = {"examples": exemplar.examples, "unserved": found.unserved, "drawn": found.drawn}
        versions = {"version": found.version, "covered_by": found.covering.number if found.covering else None}
        print_json({**row, **lists, **versions, "judged": verdict.model_dump(mode="json") if verdict else None})
        return 0
    asked = f", asked by {exemplar.asked_by}" if exemplar.asked_by else ""
    model = f" with {exemplar.model}" if exemplar.model else ""
    say(f"{exemplar.id}: {exemplar.writer} wrote it{model}{asked}")
    say(f"  {short(exemplar.query)}\n  {short(exemplar.answer)}")
    if verdict:
        say(_judged_line(verdict))
        say("\n".join(f"  {reason}" for reason in verdict.reasons))
        if verdict.fit is not None:
            say(f"  log odds that the answer belongs to the query: {verdict.fit:.1f}")
    if found.covering:
        say(f"version {found.covering.number} of the retriever covers it; version {found.version} ranks now")
    say(
        f"not served to {settings.user}: {'; '.join(found.unserved)}"
        if found.unserved
        else f"served to {settings.user}"
    )
    return 0


def grant(settings: Settings, name: str, readers: Sequence[str], private: bool, everyone: bool) -> int:
    """Say who may read what the user has written."""
    if (bool(readers), private, everyone).count(True) != 1:
        raise InputError("say who may read: names, or --everyone, or --private")

    async def run() -> None:
        async with pools.open_pool(settings, name) as pool:
            await pool.share(settings.user, [EVERYONE] if everyone else [*readers])

    asyncio.run(run())
    who = "everybody in the pool" if everyone else ", ".join(readers) or "nobody else"
    say(f"what {settings.user} writes in {name} is read by: {who}")
    return 0


def withdraw(
    settings: Settings, name: str, ids: Sequence[str], writer: str, because: str, erase: bool, yes: bool
) -> int:
    """Withdraw exemplars, or all of a writer's."""
    if bool(ids) == bool(writer):
        raise InputError("say what is withdrawn: ids, or --writer NAME for all of one writer's")
    if erase and not yes and not asking.confirm("their words are deleted for good, go on?"):
        return 0

    async def run() -> list[str]:
        async with pools.open_pool(settings, name) as pool:
            return await pool.withdraw(*ids, writer=writer, by=settings.user, because=because, erase=erase)

    found = asyncio.run(run())
    say(f"{count_of(len(found), 'exemplar')} withdrawn; what was drawn from them is served no more, either")
    return 0


def export(settings: Settings, name: str, file: Path | None) -> int:
    """Write what the user may be served as pairs for fine-tuning."""

    async def run() -> list[str]:
        async with pools.open_pool(settings, name) as pool:
            return await export_lines(pool, settings.user)

    lines = asyncio.run(run())
    with files.open_writer(file) as write:
        for line in lines:
            write(line)
    return 0


def _judged_row(judged: ExemplarJudged) -> dict[str, object]:
    return judged.model_dump(mode="json")


def _judged_line(judged: ExemplarJudged) -> str:
    by = judged.model or "a person"
    return f"{judged.id}  {judged.verdict}, {judged.score:g} points by {by}" + (
        f": {judged.reasons[0]}" if judged.verdict == "rejected" and judged.reasons else ""
    )
