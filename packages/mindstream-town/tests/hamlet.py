"""A small town for tests: three people, two houses, a café with a piano."""

from __future__ import annotations

import re
from pathlib import Path

from mindstream_town.formats.town_file import parse_town
from mindstream_town.profile import Profile
from mindstream_town.setting import Setting
from mindstream_town.source import setting_of
from mindstream_town.town import Town

from mindstream.models.roles import Models

HAMLET = '''
[town]
name = "Hamlet"
start = 2023-02-13T00:00:00

[map]
rows = """
####################
#aaaaa#bbbbb#cccccc#
#aaaaa#bbbbb#cccccc#
#aaaaa#bbbbb#cccccc#
###.#####.#####.####
#..................#
#..................#
####################
"""
things = """
....................
.1...s.1...t.k....p.
....................
........v...........
....................
....................
....................
....................
"""
[map.places]
a = "Mill House:room"
b = "Elm House:room"
c = "Oak Cafe:cafe"
[map.objects]
1 = "bed"
s = "shower"
t = "stove"
v = "desk"
k = "counter"
p = "piano"

[conditions]
danger = ["burning", "on fire"]
fine = ["freshly polished", "clean and tidy"]

[[places]]
address = "Oak Cafe:cafe"
purpose = ["eat"]
[[places]]
address = "Mill House:room:shower"
capacity = 1

[[residents]]
name = "Ada Brook"
age = 34
innate = "friendly, curious"
learned = "Ada Brook is a baker who runs the Oak Cafe."
currently = "Ada Brook is learning a poem by heart."
lifestyle = "Ada Brook goes to bed around 10pm, wakes up around 6am."
routine = "Ada Brook works at the Oak Cafe counter from 8am to 6pm."
home = "Mill House:room"
bed = "bed"
day = [
    { from = "06:00", to = "06:20", what = "taking a shower", where = "shower" },
    { from = "06:20", to = "07:30", what = "having breakfast" },
    { from = "08:00", to = "18:00", what = "serving guests", where = "Oak Cafe:cafe:counter", duty = true },
    { from = "18:30", to = "22:00", what = "reading" },
]
seeds = [
    { text = "Ada Brook is planning a reading evening at Oak Cafe on February 14th from 5pm to 7pm.", weight = 8, \
what = "reading to each other", where = "Oak Cafe:cafe", host = "Ada Brook", \
from = 2023-02-14T17:00:00, to = 2023-02-14T19:00:00 },
]
knows = ["Oak Cafe:cafe:counter", "Oak Cafe:cafe:piano"]
relations = [{ who = "Ben Hale", as = "husband" }]

[[residents]]
name = "Ben Hale"
age = 36
innate = "calm"
learned = "Ben Hale is a piano tuner."
lifestyle = "Ben Hale goes to bed around 11pm, wakes up around 7am."
home = "Mill House:room"
bed = "bed"
day = [
    { from = "07:00", to = "07:20", what = "taking a shower", where = "shower" },
    { from = "07:20", to = "08:30", what = "having breakfast" },
    { from = "09:00", to = "12:00", what = "tuning the piano", where = "Oak Cafe:cafe:piano", duty = true },
    { from = "12:00", to = "13:00", what = "having lunch", where = "Oak Cafe:cafe" },
    { from = "13:30", to = "23:00", what = "mending a clavichord" },
]
knows = ["Oak Cafe:cafe:piano"]
relations = [{ who = "Ada Brook", as = "wife" }]

[[residents]]
name = "Cleo Marsh"
age = 22
innate = "outgoing"
learned = "Cleo Marsh is a student of history who writes at the Oak Cafe."
lifestyle = "Cleo Marsh goes to bed around 12am, wakes up around 8am."
home = "Elm House:room"
day = [
    { from = "08:00", to = "09:00", what = "having breakfast", where = "stove" },
    { from = "09:30", to = "12:30", what = "writing a thesis", where = "desk", duty = true },
    { from = "12:30", to = "14:00", what = "having lunch", where = "Oak Cafe:cafe" },
    { from = "14:00", to = "17:00", what = "writing a thesis", where = "desk", duty = true },
    { from = "18:00", to = "00:00", what = "playing the piano", where = "Oak Cafe:cafe:piano", on = ["friday"] },
    { from = "17:00", to = "00:00", what = "reading", on = ["monday", "tuesday", "wednesday"] },
]
knows = ["Oak Cafe:cafe:counter"]
'''


ROADS = """
[[roads]]
from = "Mill House:room"
to = "Oak Cafe:cafe"
steps = 11
[[roads]]
from = "Elm House:room"
to = "Oak Cafe:cafe"
steps = 9
[[places]]
address = "Mill House:room"
objects = ["bed", "shower"]
[[places]]
address = "Elm House:room"
objects = ["bed", "stove", "desk"]
[[places]]
address = "Oak Cafe:cafe"
objects = ["counter", "piano"]
purpose = ["eat"]
"""
ON_ROADS = re.sub(
    r"^\[map\].*(?=^\[conditions\])|^\[\[places\]\]\naddress = \"Oak Cafe:cafe\"\n.*?\n\n",
    lambda found: ROADS if found[0].startswith("[map]") else "",
    HAMLET,
    flags=re.DOTALL | re.MULTILINE,
)
"""The same town, with roads instead of a map."""

KEYS = r"^\[conditions\].*?(?=^\[\[residents)|^(?:day|seeds) = \[\n.*?^\]\n|^bed = .*?\n"
PROSE = re.sub(KEYS, "", HAMLET, flags=re.DOTALL | re.MULTILINE)
"""The same without the keys that a town without a model needs."""


def on_roads(**profile: object) -> Setting:
    """Return the hamlet with roads instead of a map, ready to begin."""
    return setting_of(parse_town(ON_ROADS, Path()), seed=1, profile=Profile.model_validate(profile))


def hamlet(seed: int = 1, **profile: object) -> Setting:
    """Return the hamlet, ready to begin."""
    return setting_of(parse_town(HAMLET, Path()), seed=seed, profile=Profile.model_validate(profile))


async def live(folder: Path, setting: Setting | None, until: int, models: Models | str = "rules") -> str:
    """Begin or continue a town and run it up to a step; return the journal's checksum."""
    async with Town.open(folder, setting, model=models) as town:
        await town.run(until=until)
        return await town.digest()
