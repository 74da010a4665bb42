"""A second small town for tests: no tiles, a night watch, other jobs and words than the hamlet's."""

from __future__ import annotations

from pathlib import Path

from mindstream.town.formats.town_file import parse_town
from mindstream.town.setting import Setting
from mindstream.town.source import setting_of

SKERRY = r'''
[town]
name = "Skerry"
start = 2024-03-04T00:00:00

[[places]]
address = "Red House:living room"
objects = ["bed", "sofa", "stove", "table", "kitchen sink"]
[[places]]
address = "Red House:washroom"
objects = ["basin", "toilet", "shower"]
capacity = 1
[[places]]
address = "Net Cottage:room"
objects = ["bed", "hob", "table", "basin"]
[[places]]
address = "Harbour:quay"
objects = ["boat", "net rack", "bench"]
[[places]]
address = "Gull Inn:taproom"
objects = ["bar counter", "corner table"]
hours = "11:00-24:00"
[[places]]
address = "Lighthouse:lamp room"
objects = ["lamp", "log book", "stool"]
[[places]]
address = "Village School:classroom"
objects = ["blackboard", "desks"]
hours = "07:30-16:00"

[[roads]]
from = "Red House:living room"
to = "Red House:washroom"
steps = 1
[[roads]]
from = "Red House:living room"
to = "Harbour:quay"
steps = 20
[[roads]]
from = "Net Cottage:room"
to = "Harbour:quay"
steps = 12
[[roads]]
from = "Gull Inn:taproom"
to = "Harbour:quay"
steps = 10
[[roads]]
from = "Lighthouse:lamp room"
to = "Harbour:quay"
steps = 30
[[roads]]
from = "Village School:classroom"
to = "Harbour:quay"
steps = 15

[[residents]]
name = "Odd Berg"
age = 54
innate = "quiet"
learned = "Odd Berg is a fisherman with a boat of his own."
currently = "Odd Berg is mending nets in the evenings."
lifestyle = "Odd Berg rises at 3:30 and is in bed by half past eight in the evening."
routine = """Odd Berg fishes from the quay of the Harbour from 4:30am to 11am. \
He drinks a beer at the Gull Inn after lunch."""
home = "Red House:living room"
bed = "bed"
day = [
    { from = "03:30", to = "03:45", what = "brushing teeth", where = "washroom:basin" },
    { from = "03:45", to = "04:20", what = "having breakfast", where = "table" },
    { from = "04:30", to = "11:00", what = "fishing", where = "Harbour:quay:boat", duty = true },
    { from = "12:00", to = "13:30", what = "drinking a beer", where = "Gull Inn:taproom:corner table" },
    { from = "17:00", to = "20:30", what = "mending nets", where = "sofa" },
]
knows = ["Harbour:quay", "Harbour:quay:boat", "Gull Inn:taproom:corner table", "Gull Inn:taproom:bar counter"]
relations = [{ who = "Per Berg", as = "son" }]

[[residents]]
name = "Per Berg"
age = 9
innate = "playful"
learned = "Per Berg is a pupil of the Village School."
currently = "Per Berg is building a raft."
lifestyle = "Per Berg gets up at seven."
home = "Red House:living room"
day = [
    { from = "07:00", to = "07:20", what = "brushing teeth", where = "washroom:basin" },
    { from = "08:00", to = "15:00", what = "taking classes", where = "Village School:classroom:desks", on = [
        "monday", "tuesday", "wednesday", "thursday", "friday",
    ], duty = true },
    { from = "15:30", to = "18:00", what = "building a raft", where = "Harbour:quay" },
    { from = "18:30", to = "20:30", what = "playing" },
]
knows = ["Village School:classroom:desks", "Harbour:quay"]
relations = [{ who = "Odd Berg", as = "father" }]

[[residents]]
name = "Lars Holm"
age = 38
innate = "reserved"
learned = "Lars Holm is the lighthouse keeper and works the night shift."
currently = "Lars Holm is writing a book of weathers."
lifestyle = "Lars Holm sleeps from 7am to 2pm."
routine = "Lars Holm keeps watch in the lamp room of the Lighthouse from 8pm to 5am. At 1am he eats at the Lighthouse."
home = "Net Cottage:room"
bed = "bed"
day = [
    { from = "14:00", to = "15:00", what = "having breakfast", where = "table" },
    { from = "16:00", to = "17:30", what = "walking about", where = "Harbour:quay" },
    { from = "20:00", to = "01:00", what = "keeping watch", where = "Lighthouse:lamp room:lamp", duty = true },
    { from = "01:00", to = "01:30", what = "eating", where = "Lighthouse:lamp room:stool" },
    { from = "01:30", to = "05:00", what = "keeping watch", where = "Lighthouse:lamp room:lamp", duty = true },
    { from = "06:00", to = "07:00", what = "having supper", where = "table" },
]
knows = ["Lighthouse:lamp room:lamp", "Lighthouse:lamp room:stool", "Gull Inn:taproom:corner table", "Harbour:quay"]
'''


def skerry(seed: int = 1) -> Setting:
    """Return the village, ready to begin."""
    return setting_of(parse_town(SKERRY, Path()), seed=seed)
