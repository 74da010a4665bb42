"""The state of a resident, and the effect of each row on it. Used by running towns, on resuming and in replays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel

from mindstream.frozen import Frozen
from mindstream.log.events import Event, Reflected
from mindstream_town.events import (
    Act,
    Acted,
    ActFinished,
    Asked,
    Block,
    Briefed,
    BroughtIn,
    DayPlanned,
    Decided,
    Declined,
    Embodied,
    IdentityRenewed,
    MemoriesRated,
    Met,
    MovedIn,
    Overheard,
    Perceived,
    Released,
    Resolved,
    ResultAsked,
    SceneBegan,
    Spoke,
    SpokenLine,
    Talked,
    TasksPlanned,
)
from mindstream_town.profile import Profile
from mindstream_town.world.tree import Spot


class Belief(Frozen):
    """A belief of a resident, compared with the facts.

    Attributes:
        kind: `object` or `resident`: what the resident last saw of an object or of another resident; `planted`: a
            belief that began with a user's whisper.
        since: step at which the resident came to believe it.
        origin: how the belief began, in words.
        is_false: whether the world differs from the belief; None for a planted belief, which no row of the log can
            confirm.
    """

    kind: str
    about: str
    believed: str
    happened: str
    is_false: bool | None
    since: int
    origin: str


class Done(NamedTuple):
    """A finished activity of today: start in minutes after midnight, duration in minutes, text."""

    start: int
    minutes: int
    what: str


class ResidentState(BaseModel, frozen=True):
    """The state of a resident at a step, without its memory.

    Attributes:
        currently: text of the present concerns.
        day: number of the planned day, from 0; -1: none.
        broad: plan of `day` in broad strokes.
        blocks: plan of `day` in order, without gaps.
        act: the current act; None before the first one.
        seen: the last percepts, the newest last.
        partner: the other speaker of the resident's talk, which lasts until `act` ends; "": none.
        rested: for each partner, the step until which this resident does not begin another talk with the partner.
        knows: addresses of known places.
        met: for each partner, the step of the last talk.
        talked: number of talks.
        shared: for each partner, ids of the resident's records that the partner knows, too: what one of the two told
            the other, and the memories of their talks.
        gathered: total importance of memories since the last reflection.
        considered: for each object, the step of the last decision about it.
        accepted: for each object, the step of the last decision not to change an act that needs it.
        left: for each object, the condition in which the resident's own act last left it.
        scenes: for each partner, the step in which the last scene with the partner began, or in which the two last
            settled something without a scene.
        scene: the scene that has begun and whose reply has not been applied yet; None: none.
        result: the request for the result of an act whose reply has not been applied yet; None: none.
        asked: number of model calls and tokens used on the planned day.
        done: finished activities of today, the newest last; only in the mode `paper`.
        unrated: ids of records that are not rated yet.
        unrated_since: step of the first unrated record, or of the last rating if the rating is later.
        summary: the resident's summary of itself.
        summed_up: step at which the summary was written.
        embodied: name of the user who controls the resident; "": none.
        about: the life story, if it was rewritten since the town began; "": as in the description.
        stances: for each partner, the resident's attitude toward the partner, in words.
        keeps: ids of the memories that the resident keeps to itself, as decided with the day's plan.
        avoids: for each partner, whether the resident keeps away from the partner. Only partners are listed for which a
            meeting has changed this.
        tells: ids of memories to pass on, each with the names of the people who were to hear it, as decided with the
            day's plan.
        briefing: for a resident with secrets: the last decision about what conversations may show of the resident.
        cleared, hinted: ids of memories that reveal nothing of the resident's secrets, and of memories that reveal
            something. Memories that are not judged yet are in neither.
        confided: whether the resident has ever met a person after it had decided to tell this person something of its
            secrets, or a pretext. True also if a user gave up control of the resident after such a decision.
        talk: lines of an unfinished talk with a user.
        talks_with: the other speaker of `talk`; if `talk` is empty, of the last talk with a user.
    """

    name: str
    currently: str = ""
    day: int = -1
    broad: tuple[str, ...] = ()
    blocks: tuple[Block, ...] = ()
    home: Spot = (0, 0)
    act: Act | None = None
    seen: tuple[tuple[str, str, str], ...] = ()
    partner: str = ""
    rested: dict[str, int] = {}
    knows: frozenset[str] = frozenset()
    met: dict[str, int] = {}
    talked: int = 0
    shared: dict[str, frozenset[str]] = {}
    gathered: float = 0.0
    considered: dict[str, int] = {}
    accepted: dict[str, int] = {}
    left: dict[str, str] = {}
    scenes: dict[str, int] = {}
    scene: SceneBegan | None = None
    result: ResultAsked | None = None
    asked: tuple[int, int] = (0, 0)
    done: tuple[Done, ...] = ()
    unrated: tuple[str, ...] = ()
    unrated_since: int = -1
    summary: str = ""
    summed_up: int = -1
    embodied: str = ""
    about: str = ""
    stances: dict[str, str] = {}
    keeps: frozenset[str] = frozenset()
    tells: dict[str, tuple[str, ...]] = {}
    avoids: dict[str, bool] = {}
    briefing: Briefed | None = None
    cleared: frozenset[str] = frozenset()
    hinted: frozenset[str] = frozenset()
    confided: bool = False
    talk: tuple[SpokenLine, ...] = ()
    talks_with: str = ""

    def spot(self, step: int) -> Spot:
        return self.act.spot(step) if self.act else self.home

    @property
    def asleep(self) -> bool:
        """Whether the resident sleeps or is on its way to bed; then it cannot be spoken to."""
        return self.act is not None and self.act.asleep

    def is_talking(self, step: int) -> bool:
        return bool(self.partner) and self.act is not None and step < self.act.until

    def sleeps_on(self, minute: int, ended: bool) -> bool:
        """Return whether the resident sleeps and continues to sleep; `ended`: its act has ended."""
        if not self.asleep or not ended:
            return self.asleep
        block = self.block_at(minute)  # without a plan for this minute, it continues to sleep
        return block is None or block.asleep

    def block_at(self, minute: int) -> Block | None:
        """Return the block of the plan for a minute of the day; None: there is none."""
        for block in self.blocks:  # takes half as long as a generator
            if block.start <= minute < block.start + block.minutes:
                return block
        return None


def applied(state: ResidentState, event: Event, profile: Profile) -> ResidentState:
    """Return the state after the event of a row."""
    changed = _changed(state, event, profile)
    return state.model_copy(update=changed) if changed else state


def _changed(state: ResidentState, event: Event, profile: Profile) -> dict[str, object]:
    """Return the fields that an event changes."""
    match event:
        case MovedIn():
            return {"home": event.spot, "knows": frozenset(event.knows)}
        case BroughtIn():
            return {"seen": event.seen, "gathered": event.gathered, "rested": event.rested}
        case Perceived():
            seen = (*state.seen, *event.seen)[-profile.retention :] if profile.retention else ()
            knows = (state.knows | frozenset(event.places)) - frozenset(event.gone)
            gathered = state.gathered + event.gathered
            new = {"seen": seen, "knows": knows, "gathered": gathered, "cleared": state.cleared.union(event.clears)}
            asked = {"result": None} if event.result else {}
            return new | asked | _unrated(state, event.step, event.unrated)
        case ResultAsked():
            return {"result": event}
        case Reflected():
            return {"gathered": 0.0}
        case DayPlanned():
            new = {"day": event.day, "currently": event.currently, "broad": event.broad, "blocks": event.blocks}
            return new | {"asked": (0, 0), "done": (), "keeps": frozenset(event.keeps), "tells": event.tells}
        case TasksPlanned():
            return {"blocks": spliced(state.blocks, event.blocks)}
        case Acted():
            return {"act": event.act, "partner": "", "left": state.left | _left_by(state.act, event.step)}
        case Decided() if event.other and not event.yes:
            return {"rested": state.rested | {event.other: event.step + profile.talk_rest}}
        case Decided() if event.place:
            accepts = not event.yes and state.act is not None and state.act.needs(event.place)
            now = {event.place: event.step}
            return {"considered": state.considered | now, "accepted": state.accepted | (now if accepts else {})}
        case SceneBegan():
            assert state.act is not None  # a resident in a scene has an act
            scenes = state.scenes | {event.partner: event.step}
            return {
                "act": talk_act(event, state.act),
                "partner": event.partner,
                "scene": event,
                "scenes": scenes,
            }
        case Met():
            ends = state.scene is not None and state.scene.partner == event.other
            heard = state.shared.get(event.other, frozenset())
            return {
                "scene": None if ends else state.scene,
                "scenes": state.scenes if ends else state.scenes | {event.other: event.step},
                "gathered": state.gathered + event.gathered,
                "stances": state.stances | ({event.other: event.stance} if event.stance else {}),
                "avoids": state.avoids | ({} if event.avoids is None else {event.other: event.avoids}),
                "shared": state.shared | ({event.other: heard.union(event.told)} if event.told else {}),
                "cleared": state.cleared.union(event.clears),
                "confided": state.confided or bool(state.briefing and event.other in state.briefing.lets_on),
            }
        case Briefed():
            return {"briefing": event, "cleared": frozenset(event.shows), "hinted": frozenset(event.hides)}
        case Asked():
            calls, tokens = state.asked
            return {"asked": (calls + event.calls, tokens + event.tokens)}
        case Resolved():
            return {"currently": event.currently, "about": event.about or state.about}
        case Talked():
            return _after_talk(state, event, profile)
        case Overheard() if event.said:
            return {"gathered": state.gathered + event.gathered}
        # events of the mode `paper`
        case ActFinished():
            done = (*state.done, Done(event.start, event.minutes, event.what))
            return {"done": done} | _unrated(state, event.step, event.records)
        case Overheard():
            return _unrated(state, event.step, event.records)
        case MemoriesRated():
            left = tuple(each for each in state.unrated if each not in event.records)
            return {"unrated": left, "unrated_since": event.step, "gathered": state.gathered + event.gathered}
        case IdentityRenewed():
            return {"summary": event.summary, "summed_up": event.step}
        # events of a user who talks with the resident or controls it
        case Spoke():
            return _after_line(state, event)
        case Declined():
            rested = state.rested | {event.partner: event.step + profile.talk_rest}
            gathered = state.gathered + event.gathered
            return _freed(state, event.partner, event.step) | {"rested": rested, "gathered": gathered}
        case Embodied():
            return {"embodied": event.person}
        case Released():
            confided = state.confided or bool(state.briefing and state.briefing.lets_on)
            return {"embodied": "", "briefing": None, "confided": confided}
    return {}


def _left_by(act: Act | None, step: int) -> dict[str, str]:
    """Return the object of an act with its new condition; an act that is broken off leaves nothing."""
    is_over = act is not None and act.leaves and step >= max(act.until, act.arrives)
    return {act.place: act.leaves.strip()} if act and is_over else {}


def _unrated(state: ResidentState, step: int, records: Sequence[str]) -> dict[str, object]:
    """Return the changed fields after records without a rating were added."""
    if not records:
        return {}
    return {"unrated": (*state.unrated, *records), "unrated_since": state.unrated_since if state.unrated else step}


def _after_talk(state: ResidentState, event: Talked, profile: Profile) -> dict[str, object]:
    assert state.act is not None  # a resident that talks has an act
    rested = {name: until for name, until in state.rested.items() if until > event.step}
    told = {id_ for line in event.lines if line.by == state.name for id_ in line.told}
    during: dict[str, object] = {"act": talk_act(event, state.act), "partner": event.partner}
    shared = state.shared.get(event.partner, frozenset()) | told | {*event.records, *event.known}
    if state.scene and (
        state.act.why != "talk" or event.until <= event.step
    ):  # a user has made the resident act, or the talk is over
        during = {}
    return (
        (_freed(state, event.partner, event.step) if state.talk else during)
        | {
            "rested": rested | {event.partner: event.until + profile.talk_rest},
            "met": state.met | {event.partner: event.step},
            "talked": state.talked + 1,
            "shared": state.shared | {event.partner: shared},
            "gathered": state.gathered + event.gathered,
        }
        | _unrated(state, event.step, event.unrated)
    )


def _after_line(state: ResidentState, event: Spoke) -> dict[str, object]:
    """Return the changed fields after a line of a talk with a user."""
    assert state.act is not None  # a resident that talks has an act
    if state.partner == event.partner and state.talk:
        return {"act": state.act.model_copy(update={"until": event.until}), "talk": (*state.talk, event.line)}
    partner = event.partner
    return {"act": talk_act(event, state.act), "partner": partner, "talk": (event.line,), "talks_with": partner}


def _freed(state: ResidentState, partner: str, step: int) -> dict[str, object]:
    """Return the changed fields after a talk with a user has ended; the resident continues its day in the next step."""
    if state.partner != partner or state.act is None:
        return {"talk": ()}
    return {"act": state.act.model_copy(update={"until": step + 1}), "partner": "", "talk": ()}


def talk_act(event: Talked | Spoke | SceneBegan, before: Act) -> Act:
    """Return the act of a resident that talks; it stays at its position."""
    x, y = before.spot(event.step)
    return Act(
        what=f"talking with {event.partner}",
        place=before.place if before.has_arrived(event.step) else "",
        since=event.step,
        until=event.until,
        path=f"{x},{y}:",
        why="talk",
    )


def spliced(blocks: Sequence[Block], new: Sequence[Block]) -> tuple[Block, ...]:
    """Replace the plan from the start of the first new block to the end of the last one; cut overlapping blocks."""
    if not new:
        return tuple(blocks)
    begin, end = new[0].start, new[-1].end
    kept: list[Block] = []
    for block in blocks:
        if block.end <= begin or block.start >= end:
            kept.append(block)
            continue
        if block.start < begin:
            kept.append(block.model_copy(update={"minutes": begin - block.start}))
        if block.end > end:
            start = max(block.start, end)
            kept.append(block.model_copy(update={"start": start, "minutes": block.end - start}))
    kept += new
    return tuple(sorted((block for block in kept if block.minutes > 0), key=lambda block: block.start))
