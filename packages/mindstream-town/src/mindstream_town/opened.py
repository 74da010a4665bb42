"""Operations on the town of a data folder with a user's settings: begin, open, run, estimate."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from mindstream.clock import ManualClock, SystemClock
from mindstream.engines import open_engine
from mindstream.errors import InputError
from mindstream.guidance import nearest
from mindstream.identifiers import StreamName
from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.memory.memory import Memory
from mindstream.memory.opening import open_store
from mindstream.memory.store.record import KINDS, Record
from mindstream.memory.store.store import Store
from mindstream.minds.calls import CallLog
from mindstream.models.embedders.embedder import Embedder, embedder
from mindstream.models.providers.provider import EngineModel
from mindstream.models.roles import AnyModels, Models
from mindstream.models.rules import Rules
from mindstream.service.folders import require_room_for_town, require_town
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream_town.events import JOURNAL
from mindstream_town.formats.town_file import describe_mistake
from mindstream_town.inspect.estimate import Counting, cost_usd, count_calls
from mindstream_town.inspect.history import step_of
from mindstream_town.inspect.lookup import find_step, format_time
from mindstream_town.journal import TownState, journal, read_setting, read_town
from mindstream_town.packs import find_pack
from mindstream_town.profile import Profile
from mindstream_town.residents.person import Person
from mindstream_town.residents.places import words_of
from mindstream_town.setting import Setting
from mindstream_town.source import setting_of
from mindstream_town.town import Order, Town
from mindstream_town.world.tree import OBJECT

SWITCHES = {
    "observation": "observes",
    "reflection": "reflects",
    "planning": "plans",
    "recall": "recalls",
    "talk": "talks",
}
"""Parts of residents that can be switched off, each with the profile constant that switches it off."""
SLOTS = 8
"""Default maximum of simultaneous model calls of a town."""
WAITING = 8
"""Concurrent model calls per processor if they run as Ray tasks; they mostly wait for a model provider."""


def read_profile(given: Iterable[str], without: Iterable[str]) -> Profile:
    """Parse constants typed as `key=value`, and the names of parts to switch off.

    Raises:
        InputError: a key, a part or a value is invalid.
    """
    values: dict[str, object] = {}
    for word in given:
        key, equals, value = word.strip().partition("=")
        if not equals:
            raise InputError(f"expected KEY=VALUE, such as vision=4, found {word!r:.99}")
        # without the last field, `compat`, which has no effect
        values[_known(key.strip(), [*Profile.model_fields][:-1], "constant")] = value.strip()
    for word in without:
        values[SWITCHES[_known(word.strip(), SWITCHES, "part of a resident")]] = False
    try:
        return Profile.model_validate(values)
    except ValidationError as error:
        raise InputError(describe_mistake(Profile, error)) from None


def _known(name: str, names: Iterable[str], what: str) -> str:
    known = list(names)
    if name in known:
        return name
    near = nearest(name, known)
    raise InputError(
        f"unknown {what} {name!r:.99}: " + (f"did you mean {near!r}?" if near else f"use one of: {', '.join(known)}")
    )


def find_setting(named: str, seed: int, profile: Profile) -> Setting:
    """Return the setting of a new town: a shipped one by name, another by the path of its file or folder.

    Raises:
        InputError: there is no such town, or its file is invalid.
    """
    return setting_of(find_pack(Path(named) if named.endswith(".toml") else named), seed=seed, profile=profile)


async def begin(settings: Settings, setting: Setting) -> None:
    """Create a town in the data folder.

    Raises:
        InputError: the folder contains a town or other data already, or a resident has no bed.
    """
    await require_room_for_town(settings.data)
    if faults := describe_bedless(setting):
        raise InputError("\n".join(faults))
    async with Town.open(settings.data, setting, embed=settings.embedder):
        pass


def describe_bedless(setting: Setting) -> list[str]:
    """Return, for each resident (visitors excepted) without a bed, a message with what to add to the town file."""
    return [
        f"residents: {person.name}: has no bed at {words_of(person.home)}, only {_things_at_home(setting, person)}: add"
        ' bed = "…" with an object of the home, or draw an object called "bed" there'
        for person in setting.people.values()
        if not person.visits and person.bed not in setting.addresses
    ]


def _things_at_home(setting: Setting, person: Person) -> str:
    home = setting.addresses.get(person.home)
    inside = [each.last for each in setting.world.places if home and each.level == OBJECT and each.is_within(home)]
    return ", ".join(inside) or "no objects"


@dataclass(frozen=True)
class Look:
    """A town that is open for reading."""

    store: Store
    setting: Setting
    now: int
    """The last finished step."""

    async def state(self, step: int | None = None) -> TownState:
        """Return the state after a step; None: the current one."""
        return await read_town(self.store, self.setting.profile, step)

    async def at(self, typed: str) -> tuple[TownState, int]:
        """Return the state at a typed time, and its step; "": at the last step."""
        step = find_past_step(self.setting, typed, self.now) if typed else self.now
        return await self.state(step if typed else None), step

    async def newest(self, name: str, step: int, n: int) -> list[Record]:
        """Return a resident's n newest memories as of a step, oldest first."""
        key = self.store.key(StreamName("resident", name))
        return await self.store.latest(key, KINDS, n, now=self.setting.moment(max(step, 0)))

    def step_of(self, moment: float) -> int:
        """Return the step of a moment; the first step for moments before the town began."""
        return max(0, step_of(self.setting, moment))

    async def write_journal(self) -> AsyncIterator[str]:
        """Yield the journal's lines."""
        async for line in journal(self.store, self.setting):
            yield line.decode().rstrip("\n")


@contextlib.asynccontextmanager
async def look_in(settings: Settings) -> AsyncIterator[Look]:
    """Open the town of the data folder for reading.

    Raises:
        InputError: there is no town.
    """
    await require_town(settings.data)
    async with open_store(settings.data) as store:
        setting = await read_setting(store)
        yield Look(store, setting, (await read_town(store, setting.profile)).step)


@contextlib.asynccontextmanager
async def open_town(
    settings: Settings,
    models: Models | None = None,
    order: Order | None = None,
    slots: int = SLOTS,
    ray: bool = False,
) -> AsyncIterator[Town]:
    """Open the town of the data folder with the models of the settings.

    Calls of language models are logged in the data folder.

    Args:
        models: models that the caller has opened; None: the models of the settings.
        order: order of the residents' steps; None: `free` if a model is configured, else `lockstep`.
        slots: maximum number of simultaneous model calls, at least 1.
        ray: whether model calls run as Ray tasks, including calls answered by rules. No effect if `models` is given.

    Raises:
        InputError: there is no town.
        SettingsError: a model cannot be used.
    """
    await require_town(settings.data)
    calls = CallLog(SystemClock())
    async with contextlib.AsyncExitStack() as opened:
        engine = await opened.enter_async_context(open_engine(True, WAITING, 1 / WAITING)) if ray else None
        if models is None and is_free(settings):
            rules: AnyModels = Models(EngineModel(Rules.name, engine)) if engine else Rules.name
            yield await opened.enter_async_context(
                Town.open(settings.data, model=rules, embed=settings.embedder, order=order)
            )
            return
        if models is None:
            named = await opened.enter_async_context(
                answering(settings, on_call=calls.take, engine=engine, at_once=slots)
            )
        else:
            named = models.with_listener(calls.take)
        opening = Town.open(settings.data, model=named, embed=settings.embedder, order=order, slots=slots)
        town = await opened.enter_async_context(opening)
        async with calls.writing(bill_of(town.store, town.setting, embedder(settings.embedder))):
            yield town


@contextlib.asynccontextmanager
async def counting(look: Look, settings: Settings) -> AsyncIterator[CallLog]:
    """Yield a log that adds model calls to the town's stream, for operations that otherwise only read the town."""
    calls = CallLog(SystemClock())
    async with calls.writing(bill_of(look.store, look.setting, embedder(settings.embedder))):
        yield calls


def bill_of(store: Store, setting: Setting, embed: Embedder) -> Memory:
    """Return the stream of a town's model calls. Its rows have the time of the town's start; the calls in them have the
    real time."""
    return Memory(store, JOURNAL, embed, ManualClock(setting.start))


async def estimate(
    settings: Settings, setting: Setting, steps: int, on_step: Callable[[int], None] = lambda _: None
) -> tuple[Counting, float | None]:
    """Estimate the model calls of some steps, and their cost in US dollars (None: a price is not known).

    At most the town's first day is simulated with rules. The calls of this simulation are scaled up to all steps,
    except calls that are made only when a town begins.
    """
    sample = min(steps, setting.profile.a_day)
    every = await count_calls(setting, sample, on_step=on_step, models=settings.models)
    # these prompts are only asked when a town begins, so they are not scaled up
    once = {RateImportance.label()} if setting.profile.lives == "scenes" else set[str]()
    counted = every.without_rules(settings.models).scaled(steps / sample if sample else 0.0, once)
    return counted, cost_usd(counted, settings.models)


def is_free(settings: Settings) -> bool:
    """Return whether rules answer all roles, so that the town costs nothing."""
    return set(settings.models.values()) == {Rules.name}


def find_past_step(setting: Setting, typed: str, now: int) -> int:
    """Return the past step of a typed time (see `find_step`); for a day, its last past step.

    Raises:
        InputError: the text is not a time, or the time is in the future.
    """
    step = find_step(setting, typed, now, end=True)
    if find_step(setting, typed, now) <= now < step:
        return now  # for the current day: the last finished step
    if step > now:
        lived = f"has run up to {format_time(setting, now)}" if now >= 0 else "has not run yet"
        raise InputError(f"{typed!r:.99}: {setting.name} {lived}; run it further with `mindstream town run`")
    return step
