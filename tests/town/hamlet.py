"""A small town for tests: three people, two houses, a café with a piano."""

from __future__ import annotations

from pathlib import Path

from mindstream.town.formats.town_file import parse_town
from mindstream.town.profile import Profile
from mindstream.town.setting import Setting
from mindstream.town.source import setting_of

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

[[residents]]
name = "Ada Brook"
age = 34
innate = "friendly, curious"
learned = "Ada Brook is a baker who runs the Oak Cafe."
currently = "Ada Brook is planning a reading evening at Oak Cafe on February 14th from 5pm to 7pm."
lifestyle = "Ada Brook goes to bed around 10pm, wakes up around 6am."
routine = "Ada Brook works at the Oak Cafe counter from 8am to 6pm."
home = "Mill House:room"
knows = ["Oak Cafe:cafe:counter", "Oak Cafe:cafe:piano"]
relations = [{ who = "Ben Hale", as = "husband" }]

[[residents]]
name = "Ben Hale"
age = 36
innate = "calm"
learned = "Ben Hale is a piano tuner."
lifestyle = "Ben Hale goes to bed around 11pm, wakes up around 7am."
home = "Mill House:room"
knows = ["Oak Cafe:cafe:piano"]
relations = [{ who = "Ada Brook", as = "wife" }]

[[residents]]
name = "Cleo Marsh"
age = 22
innate = "outgoing"
learned = "Cleo Marsh is a student of history who writes at the Oak Cafe."
lifestyle = "Cleo Marsh goes to bed around 12am, wakes up around 8am."
home = "Elm House:room"
knows = ["Oak Cafe:cafe:counter"]
'''


def hamlet(seed: int = 1, **profile: object) -> Setting:
    """Return the hamlet, ready to begin."""
    return setting_of(parse_town(HAMLET, Path()), seed=seed, profile=Profile.model_validate(profile))
