"""A conversation as its page shows it equals the stored one after edits, regenerations and returns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mindstream.clock import ManualClock
from mindstream.memory.conversation import Line
from mindstream.memory.memory import Memory
from mindstream.memory.store.columns import Columns
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.minds.mind import Mind
from mindstream.minds.responder import Host, answer_with
from mindstream.service.chat.companion import find_path, follow

SESSION = "companion:chat:1"


class PageTree:
    """A conversation with all its branches, as a page keeps it: each line has a parent."""

    def __init__(self) -> None:
        self.lines: list[tuple[Line, int]] = []
        self.shown = -1

    def add(self, line: Line, before: int) -> int:
        self.lines.append((line, before))
        self.shown = len(self.lines) - 1
        return self.shown

    def path(self, at: int) -> list[Line]:
        found = list[Line]()
        while at >= 0:
            line, at = self.lines[at]
            found.append(line)
        return found[::-1]

    def each(self, *, by_user: bool) -> list[int]:
        return [place for place, (line, _) in enumerate(self.lines) if line.by_user is by_user]


Move = tuple[str, int]
MOVES = st.lists(st.tuples(st.sampled_from(["say", "regenerate", "edit", "go back"]), st.integers(0, 20)), max_size=8)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
@example(moves=[("edit", 0), ("go back", 0), ("go back", 1)])
async def test_any_edits_store_each_message_once_and_match_the_page(
    moves: list[Move], tmp_path_factory: object
) -> None:
    folder = Path(tmp_path_factory.mktemp("talk"))  # type: ignore[attr-defined]
    count = 0

    async def answer(text: str, host: Host):  # type: ignore[no-untyped-def]
        nonlocal count
        count += 1
        yield f"answer {count} to {text}"

    async with Mind.open(folder, session=SESSION, responder=answer_with(answer)) as mind:
        page = PageTree()
        for move, draw in [("say", 0), *moves]:
            users, minds = page.each(by_user=True), page.each(by_user=False)
            if move == "regenerate" and minds:
                await answer_page(mind, page, page.lines[minds[draw % len(minds)]][1])
            elif move == "go back" and minds:
                page.shown = minds[draw % len(minds)]
                await answer_page(mind, page, page.add(user_line(page), page.shown))
            elif move == "edit" and users:
                await answer_page(mind, page, page.add(user_line(page), page.lines[users[draw % len(users)]][1]))
            else:
                await answer_page(mind, page, page.add(user_line(page), page.shown))
            held = await mind.memory.latest("chat", 200, episode=SESSION)
            assert [each.text for each in held] == [line.text for line in page.path(page.shown)]
        heard = [row.event.text async for row in mind.memory.log(kinds=["heard"])]  # type: ignore[attr-defined]
        assert heard == [page.lines[place][0].text for place in page.each(by_user=True)]


def user_line(page: PageTree) -> Line:
    return Line(by_user=True, text=f"words {len(page.lines)}")


async def answer_page(mind: Mind, page: PageTree, user: int) -> None:
    """Answer a message of a page, as the chat endpoint does."""
    *before, new = page.path(user)
    followed = await follow(mind.memory, SESSION, before, new.text)
    assert followed.all_heard
    rows = mind.answer_again(followed.again) if followed.again else mind.hear(new.text)
    words = [row.event.text async for row in rows if row.event.kind == "said"]  # type: ignore[attr-defined]
    page.add(Line(by_user=False, text=words[-1]), user)


async def talk(memory: Memory, *lines: str) -> list[Record]:
    """Store a conversation; the user speaks first."""
    drafts = [
        RecordDraft(text=text, kind="chat", episode=SESSION, data={"by_user": not place % 2})
        for place, text in enumerate(lines)
    ]
    return await memory.retain_all(drafts)


def shown(*lines: str, begins: int = 0) -> list[Line]:
    return [Line(by_user=not (place + begins) % 2, text=text) for place, text in enumerate(lines)]


async def test_a_page_that_shows_only_the_end_keeps_the_beginning(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ann") as memory:
        await talk(memory, "a", "b", "c", "d")
        followed = await follow(memory, SESSION, shown("c", "d"), "e")
        assert followed.all_heard and followed.again is None
        assert [each.text for each in await memory.latest("chat", 9, episode=SESSION)] == ["a", "b", "c", "d"]


async def test_an_interrupted_answer_is_recognised_by_its_beginning(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ann") as memory:
        await talk(memory, "a", "One two th")
        for text in ("One two th", "One two", "One two three", " One  two\nth "):
            assert (await follow(memory, SESSION, shown("a", text), "e")).all_heard
        assert not (await follow(memory, SESSION, shown("a", "Two"), "e")).all_heard


async def test_forgotten_messages_are_not_stored_again_from_a_page(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ann") as memory:
        first, *_ = await talk(memory, "my code is 4711", "I see", "c", "d")
        await memory.forget(first.id)
        followed = await follow(memory, SESSION, shown("my code is 4711", "I see", "c", "d"), "e")
        assert not followed.all_heard
        assert "4711" not in str(await memory.latest("chat", 9, episode=SESSION))


async def test_a_correction_is_kept_when_a_page_shows_the_old_text(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ann") as memory:
        first, *_ = await talk(memory, "I am 50", "I see")
        await memory.correct(first.id, "I am 51")
        assert (await follow(memory, SESSION, shown("I am 50", "I see"), "e")).all_heard
        assert sorted(each.text for each in await memory.latest("chat", 9, episode=SESSION)) == ["I am 51", "I see"]


async def test_the_messages_that_a_page_shows_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"line {n}" for n in range(60)]
    async with Memory.open(tmp_path, "ann") as memory:
        await talk(memory, *lines[:40])
        await follow(memory, SESSION, shown(*lines[:40]), lines[40])
        await talk(memory, *lines[40:])
        read, read_at = list[int](), memory.records_at

        async def counted(columns: Columns, rows: Sequence[int]) -> list[Record]:
            read.extend(rows)
            return await read_at(columns, rows)

        monkeypatch.setattr(memory, "records_at", counted)
        followed = await follow(memory, SESSION, shown(*lines[:58]), lines[58])
        assert followed.all_heard
        assert read == [*range(40, 60), 58, 59]  # the new ones, and those that the page does not show
        left = [each.text for each in await memory.latest("chat", 99, episode=SESSION)]
        assert left == lines[:59]  # line 58 is answered again


async def test_comparing_a_long_unrelated_chat_is_cheap(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ann", clock=ManualClock()) as memory:
        records = await talk(memory, *(f"line {n}" for n in range(400)))
        page = shown(*(f"other {n}" for n in range(2_000)))
        assert find_path(page, records, memory.clock.now()) == [None] * 2_000
