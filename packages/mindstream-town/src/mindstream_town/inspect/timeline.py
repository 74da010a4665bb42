"""A resident's days as lines of text; related acts are combined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mindstream.errors import InputError, clipped
from mindstream.log.events import Heard, Reflected, Remembered, Said
from mindstream_town.events import Acted, Declined, Overheard, SpokenLine, Talked
from mindstream_town.inspect.history import History
from mindstream_town.residents.places import with_article, words_of

LONGEST = 200
"""Maximum characters of a line, unless the full form is requested."""


@dataclass(frozen=True)
class Moment:
    """An act, utterance, percept or thought on the timeline.

    Attributes:
        end: step at which the moment ended; equal to `step` if the moment has no duration.
        tasks: the parts of an act, in order.
        aside: whether the moment is a note on a talk or an overheard line. Such moments are shown only in the full
            form, or if they contain the searched text.
        place, because: place and reason in words; "": none.
    """

    step: int
    end: int
    text: str
    place: str = ""
    because: str = ""
    tasks: tuple[str, ...] = ()
    aside: bool = False

    @property
    def is_act(self) -> bool:
        """Whether the moment is an act, which has a duration."""
        return self.end > self.step

    def describe(self, full: bool) -> str:
        """Return the moment as a line, shortened unless `full`."""
        said = self.text + (f" ({', '.join(dict.fromkeys(self.tasks))})" if self.tasks else "")
        said += f", at {with_article(self.place)}" if self.place else ""
        said += f", because {self.because}" if self.because else ""
        return said if full else clipped(said, LONGEST)


def read_timeline(
    history: History, name: str, start: int = 0, end: int | None = None, about: str = "", *, full: bool = False
) -> list[Moment]:
    """Return a resident's acts, utterances and thoughts between two steps. Minor ones (`Moment.aside`) are listed only
    with `full` or `about`.

    Args:
        start, end: the first and the last step; None: the last step of the history.
        about: only moments whose text contains this, such as a name.
        full: list each act separately; else parts of an act are combined, also across talks.

    Raises:
        InputError: there is no such resident.
    """
    if name not in history.setting.people:
        raise InputError(f"{history.setting.name} has no resident {name!r}; residents: {', '.join(history.names)}")
    last = history.step if end is None else end
    moments = sorted(_moments(history, name), key=lambda each: (each.step, not each.is_act))
    moments = moments if full else _joined(moments)
    moments = [each for each in moments if start <= each.step <= last or each.step <= start < each.end]
    wanted = about.casefold()
    if not wanted:
        return [each for each in moments if full or not each.aside]
    return [each for each in moments if wanted in each.describe(full=True).casefold()]


def lines_of(history: History, moments: list[Moment], *, full: bool = False) -> list[str]:
    """Return moments as lines below their dates: `10:00-10:25  having breakfast, at the table …`."""
    lines, day = list[str](), ""
    for each in moments:
        date, _, clock = history.clock(each.step).rpartition(" ")
        if date != day:
            day = date
            lines.append(date)
        until = f"-{history.clock(each.end)[-5:]}" if each.is_act else " " * 6
        lines.append(f"  {clock}{until}  {each.describe(full)}")
    return lines


def timeline(history: History, name: str, start: int = 0, end: int | None = None, about: str = "") -> list[str]:
    """Return the timeline (see `read_timeline`) as lines."""
    return lines_of(history, read_timeline(history, name, start, end, about))


def _joined(moments: list[Moment]) -> list[Moment]:
    """Combine adjacent moments of the same act, such as `cooking (peeling)` and `cooking (frying)`, into one.

    A talk between two moments of an act does not separate them. A moment with a reason begins a new act.
    """
    found: list[Moment] = []
    at = -1
    for each in moments:
        if not each.is_act:
            found.append(each)
            continue
        head, part = _split(each.text)
        before = found[at] if at >= 0 else None
        if before is not None and before.text == head and not each.because and each.step <= before.end + 1:
            found[at] = replace(before, end=each.end, tasks=(*before.tasks, *part), place=_wider(before, each))
        else:
            at = len(found)
            found.append(replace(each, text=head, tasks=part))
    return found


def _split(text: str) -> tuple[str, tuple[str, ...]]:
    """Split `act (part)` into the act and its part."""
    head, bracket, part = text.partition(" (")
    return (head, (part.removesuffix(")"),)) if bracket and part.endswith(")") else (text, ())


def _wider(before: Moment, each: Moment) -> str:
    """Return, in words, the narrowest place that contains the places of two moments: an object, a room or a house.

    Return "" if there is none. If only the first moment has a place, return this place.
    """
    if before.place == each.place or not each.place:
        return before.place
    here, there = (place.split(" in ", 1)[-1].removeprefix("the ") for place in (before.place, each.place))
    if here == there:
        return here
    here, there = (place.rpartition(" of ")[2] for place in (here, there))
    return here if here == there else ""


def _moments(history: History, name: str) -> Iterator[Moment]:
    yield from _acts(history, name)
    for step, talk in history.events(name, Talked):
        since = talk.since or step
        yield Moment(since, since, f"talks with {talk.partner}: {_said(talk.lines)}")
        kept = [history.by_id[name].get(id_) for id_ in talk.records]
        if thoughts := [each.text for each in kept if each is not None and each.kind == "thought"]:
            yield Moment(step, step, f"keeps in mind: {' '.join(thoughts)}", aside=True)
    for step, declined in history.events(name, Declined):
        silent = "who does not answer" if declined.by != name else f"and {name.split()[0]} does not answer"
        spoke = "speaks to" if declined.by != name else "is spoken to by"
        yield Moment(step, step, f"{spoke} {declined.partner}, {silent}: {_said(declined.lines)}")
    for step, heard in history.events(name, Overheard):
        if heard.said:
            yield Moment(step, step, f"hears {heard.speakers[0]} say to all: “{heard.said}”", aside=True)
    for step, reflected in history.events(name, Reflected):
        thoughts = [each.text for id_ in reflected.thoughts if (each := history.by_id[name].get(id_)) is not None]
        if thoughts:
            yield Moment(step, step, f"reflects: {' '.join(thoughts)}")
    yield from _from_outside(history, name)


def _said(lines: Sequence[SpokenLine]) -> str:
    return " / ".join(f"{line.by.split()[0]}: “{line.text}”" for line in lines)


def _acts(history: History, name: str) -> Iterator[Moment]:
    acts = list(history.events(name, Acted))
    for number, (step, acted) in enumerate(acts):
        end = acts[number + 1][0] if number + 1 < len(acts) else min(acted.act.until, history.step + 1)
        if acted.act.why != "talk":
            place = words_of(acted.act.place) if acted.act.place else ""
            yield Moment(step, max(end, step + 1), acted.act.what, place, acted.because)


def _from_outside(history: History, name: str) -> Iterator[Moment]:
    """Yield the resident's talks with visitors of the command `town talk`, and thoughts added by `town whisper`."""
    whispered: Counter[float] = Counter()
    for row in history.rows[name]:
        step = history.step_of(row.at)
        if isinstance(row.event, Heard):
            yield Moment(step, step, f"is visited by {row.by}, who says: “{row.event.text}”")
        elif isinstance(row.event, Said):
            yield Moment(step, step, f"answers: “{row.event.text}”")
        elif isinstance(row.event, Remembered) and row.system:
            notes = [each for each in history.records[name] if each.created == row.at and each.kind == "note"]
            if len(notes) > whispered[row.at]:
                yield Moment(step, step, f"has a thought from outside: {notes[whispered[row.at]].text}")
            whispered[row.at] += 1
