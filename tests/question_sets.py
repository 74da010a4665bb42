"""Small sets of questions in the published forms, written by hand for tests."""

from __future__ import annotations

import json
from pathlib import Path

HOTPOT = [
    {
        "_id": "5a01", "question": "Which lighthouse is older, Tornby's or Skarv's?", "answer": "Skarv Lighthouse",
        "type": "comparison", "level": "easy", "supporting_facts": [["Tornby Lighthouse", 0], ["Skarv Lighthouse", 0]],
        "context": [
            ["Tornby Lighthouse", ["Tornby Lighthouse was lit in 1893.", " It is 31 metres high."]],
            ["Skarv Lighthouse", ["Skarv Lighthouse was lit in 1871.", " It was painted red in 1920."]],
            ["Halm/Bridge", ["Halm Bridge crosses the Osk."]],
        ],
    },
    {
        "_id": "5a02", "question": "Does Halm Bridge cross the Osk?", "answer": "yes", "type": "bridge",
        "level": "easy", "supporting_facts": [["Halm Bridge", 0]],
        "context": [["Halm Bridge", ["Halm Bridge crosses the Osk."]], ["Halm Bridge", ["It opened in 1931."]]],
    },
    {
        "_id": "5a03", "question": "On which river lies the town where Ada Holm was born?", "answer": "the Osk",
        "type": "bridge", "level": "medium", "supporting_facts": [["Ada Holm", 0], ["Brix", 0]],
        "context": [
            ["Ada Holm", ["Ada Holm was a painter, born in Brix in 1902."]],
            ["Brix", ["Brix is a town on the Osk.", " It has 4,100 people."]],
        ],
    },
]  # fmt: skip
GSM8K = [
    {
        "question": "Mia picks 12 apples a day for 5 days and gives 8 away. How many has she?",
        "answer": "She picks 12*5=<<12*5=60>>60.\nShe has 60-8=<<60-8=52>>52.\n#### 52",
    },
    {"question": "A ticket is $3. What do 400 cost?", "answer": "400*3=<<400*3=1200>>1200\n#### 1,200"},
]
STRATEGY = [
    {
        "qid": "a1", "term": "Snail", "question": "Could a snail win a race against a horse?", "answer": False,
        "facts": ["Snails are slow."], "decomposition": ["How fast is a snail?"],
    },
    {"qid": "a2", "term": "Ice", "question": "Does ice float on water?", "answer": True, "facts": []},
]  # fmt: skip
TRIVIA = {
    "Data": [
        {
            "Question": "Lima is the capital of which country?", "QuestionId": "tc_1", "QuestionSource": "by hand",
            "Answer": {
                "Value": "Peru", "Aliases": ["Republic of Peru", "Perú"], "NormalizedValue": "peru",
                "NormalizedAliases": ["republic of peru", "perú", "peru"], "Type": "WikipediaEntity",
            },
        },
        {
            "Question": "On which river does Cologne lie?", "QuestionId": "tc_2",
            "Answer": {"Value": "Rhine", "Aliases": ["Rhein"], "NormalizedAliases": ["rhein", "rhine"]},
        },
    ],
    "Domain": "Web", "Split": "dev", "Version": 1.0,
}  # fmt: skip
PLAIN = [
    {"question": "What is the capital of France?", "answer": ["Paris", "City of Light"]},
    {"question": "How many legs has a spider?", "answer": 8},
    {"question": "Is snow cold?", "answer": True},
]
SETS = {
    "hotpotqa": ("hotpot.json", json.dumps(HOTPOT)),
    "gsm8k": ("gsm8k.jsonl", "\n".join(map(json.dumps, GSM8K)) + "\n"),
    "strategyqa": ("strategy.json", json.dumps(STRATEGY)),
    "triviaqa": ("trivia.json", json.dumps(TRIVIA)),
    "plain": ("plain.csv", "\ufeffquestion,answer\nWhat is the capital of France?,Paris\nHow many legs?,8\n"),
    "plain_lines": ("plain.jsonl", "\n".join(map(json.dumps, PLAIN))),
    "plain_other_names": ("other.csv", "input,target\nIs it cold?,No\nIs it hot?,Yes\n"),
}


def write_set(folder: Path, form: str) -> Path:
    """Write one of the sets; return its file."""
    name, text = SETS[form]
    (folder / name).write_text(text, "utf-8")
    return folder / name
