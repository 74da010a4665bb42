"""Metrics of a town's history: the spread of a fact, acquaintance, attendance, impossible acts."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fake_endpoint import FakeEndpoint
from hamlet import hamlet, live
from mindstream_town.events import Acted, Talked
from mindstream_town.inspect.history import History, read_history
from mindstream_town.metrics import (
    Event,
    StatesFact,
    count_events,
    curves_csv,
    draw_curves,
    examine_conduct,
    find_fact,
    hours,
    trace_acquaintance,
    trace_attendance,
    trace_fact,
    trace_meaning,
    write_csv,
)
from mindstream_town.world.routes import read_walk
from over_http import over_http

from mindstream.errors import InputError
from mindstream.models.model import Part, Piece, Request

EVENING = "there is a reading evening at Oak Cafe"
TWO_DAYS = 2 * 8_640 - 1


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    folder = tmp_path_factory.mktemp("hamlet")
    asyncio.run(live(folder, hamlet(), TWO_DAYS))
    return asyncio.run(read_history(folder))


def test_a_fact_is_found_by_its_first_memory(history: History) -> None:
    fact = find_fact("Reading evening at the Oak Cafe", history)
    assert fact.says.startswith("Ada Brook is planning") and {name for name, _ in fact.records} == {"Ada Brook"}
    with pytest.raises(InputError, match="has half of the words 'a mayor'"):
        find_fact("a mayor ", history)


def test_the_spread_of_a_fact_is_traced_through_conversations(history: History) -> None:
    diffusion = trace_fact(history, find_fact(EVENING, history))
    first, *others = diffusion.knowers
    assert (first.name, first.step, first.how, first.chain) == ("Ada Brook", 0, "beginning", ("Ada Brook",))
    assert others, "at least one other resident learned it"
    for knower in others:
        assert knower.how == "told" and knower.by and knower.chain[0] == "Ada Brook"
        assert knower.chain[-2:] == (knower.by, knower.name)
    assert diffusion.count(0) == 1 and diffusion.count(history.step) == len(diffusion.knowers)
    assert write_csv(diffusion).count("\n") == len(diffusion.knowers) + 1


async def test_without_recall_no_fact_spreads(tmp_path: Path) -> None:
    await live(tmp_path, hamlet(recalls=False), TWO_DAYS)
    past = await read_history(tmp_path)
    diffusion = trace_fact(past, find_fact(EVENING, past))
    assert [knower.name for knower in diffusion.knowers] == ["Ada Brook"]


def test_residents_who_talk_become_acquainted(history: History) -> None:
    known = trace_acquaintance(history)
    assert known.since["Ada Brook", "Ben Hale"] == 0 and known.density(0) == pytest.approx(1 / 3)
    assert known.density(history.step) >= known.density(0)
    talked = {tuple(sorted((name, talk.partner))) for name, talk in history.talks()}
    assert set(known.since) == talked | {("Ada Brook", "Ben Hale")}


def test_attendance_reports_guests_minutes_and_invitations(history: History) -> None:
    setting = history.setting
    known = trace_fact(history, find_fact(EVENING, history))
    home = setting.addresses[setting.people["Ada Brook"].home]
    night = Event(home, setting.step_at(1, 0), setting.step_at(1, 60))
    assert trace_attendance(history, night, known).minutes == {}, "sleeping residents do not attend"
    whole = trace_attendance(history, Event(home.upto(1), setting.step_at(1, 0), history.step), known)
    assert set(whole.minutes) == set(history.names)
    assert set() < set(whole.invited) <= {each.name for each in known.knowers} - {"Ada Brook"}
    assert whole.invitations[0][0] == "Ada Brook"
    assert set(whole.came_invited) >= set(whole.invited), "residents who hear of it during the event count as invited"
    assert len(whole.talked) == sum(talk.step >= setting.step_at(1, 0) for _, talk in history.talks())
    with pytest.raises(InputError, match="an event needs"):
        trace_attendance(history, Event(home, 10, 10), known)


def jumps(history: History, name: str) -> list[str]:
    """Return the times at which a resident departs from another place than its own, or makes two steps in one."""
    world, found = history.setting.world, []
    for step, acted in history.events(name, Acted):
        tiles = read_walk(acted.act.path)
        way = [history.spot(name, step - 1), *tiles] if step else tiles
        if any(world.distance(one, other) > 1 for one, other in pairwise(way)):
            found.append(history.clock(step))
    return found


def test_impossible_acts_do_not_occur(history: History) -> None:
    conduct = examine_conduct(history)
    assert (conduct.in_walls, conduct.asleep_elsewhere, conduct.talking_asleep) == (0, 0, 0)
    assert not any(jumps(history, name) for name in history.names) and "closed" not in conduct.not_believable
    assert 0.5 < conduct.adherence <= 1 and conduct.planned > 1_000
    assert conduct.believable + sum(conduct.not_believable.values()) == conduct.acts > 0


def test_a_scene_that_begins_while_a_resident_sleeps_is_noticed(history: History) -> None:
    name, step_at = "Ada Brook", history.setting.step_at
    begun, ended = step_at(1, 3 * 60), step_at(1, 12 * 60)
    assert history.state(name, begun).asleep and not history.state(name, ended - 1).asleep
    talk = Talked(step=ended, partner="Ben Hale", lines=(), until=ended, since=begun)
    rows = history.rows[name]
    row = dataclasses.replace(rows[-1], event=talk, at=history.setting.moment(ended))
    changed = {**history.rows, name: tuple(sorted((*rows, row), key=lambda each: each.at))}
    assert examine_conduct(dataclasses.replace(history, rows=changed)).talking_asleep == 1


def test_counts_and_curves_match_the_history(history: History) -> None:
    counts = count_events(history)
    assert counts.days == 2 and counts.talks == sum(1 for _ in history.talks()) > 0 and counts.calls == {}
    steps = hours(history)
    curves = {"know": trace_acquaintance(history).curve(steps)}
    assert curves_csv(history, steps, curves).count("\n") == len(steps) + 1
    assert ElementTree.fromstring(draw_curves(history, steps, curves, "who < knows")).tag.endswith("svg")


class Reader:
    """Say that all memories with certain words state the fact, and name a memory that does not exist."""

    name = "a reader"

    def __init__(self, *words: str) -> None:
        self.words, self.asked = words, list[StatesFact]()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        ask = request.prompt
        assert isinstance(ask, StatesFact)
        self.asked.append(ask)
        numbers = [n for n, each in enumerate(ask.memories, 1) if all(word in each for word in self.words)]
        yield Piece(json.dumps({"numbers": [*numbers, 999]}))


async def test_a_model_finds_who_knows_a_fact_by_meaning(history: History, door: FakeEndpoint) -> None:
    traced, reader = trace_fact(history, find_fact(EVENING, history)), Reader("reading evening")
    async with over_http(reader, door) as models:
        read = await trace_meaning(history, "people meet in the evening to read aloud", models.of("reasoner"))
    assert {each.name for each in read.knowers} == {each.name for each in traced.knowers}
    first, *others = read.knowers
    assert (first.name, first.how, first.step) == ("Ada Brook", "beginning", 0)
    assert others and all(each.how == "told" and each.by and each.chain == (each.by, each.name) for each in others)
    assert {each.fact for each in reader.asked} == {"people meet in the evening to read aloud"}
    assert len(reader.asked) <= 2 * len(history.names), "a resident is read until the first statement"
