"""The nine example agents are complete; custom agents and the published ones are read the same way."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import pytest
from mindstream_evals.sharing.agents import ABOUT, DOMAINS, TESTS, Agent, Exchange, load_cast

from mindstream.errors import InputError
from mindstream.sharing.guarding import find_faults

CAST = load_cast()


def exchanges(agent: Agent) -> list[Exchange]:
    return [*agent.seeds, *agent.stream, *agent.tests]


def test_there_are_nine_agents_in_three_domains_with_a_rubric_each() -> None:
    assert {name: sorted(each.name for each in agents) for name, agents in CAST.domains.items()} == {
        "literature": ["limerick", "sonnet", "wuyanlushi"],
        "logic": ["pun", "puzzle", "riddle"],
        "plans": ["fitness", "study", "travel"],
    }
    assert set(CAST.rubrics) == set(CAST.domains) and CAST.left_out == 0
    for agent in CAST.agents:
        assert len(agent.seeds) >= 4 and len(agent.stream) >= 3 and len(agent.tests) >= 3


def test_the_shipped_pairs_are_unique_and_valid() -> None:
    told = list(chain(*map(exchanges, CAST.agents)))
    assert len({each.query for each in told}) == len({each.answer for each in told}) == len(told) == 138
    assert not [each.query for each in told if find_faults(each.query, each.answer)]


def own(folder: Path, name: str = "haiku", **others: object) -> Path:
    """Write a custom agent."""
    pairs = "\n".join(
        f'[[{kind}]]\nquery = "A {kind} haiku?"\nanswer = "Rain, {kind}."' for kind in ("seeds", "stream")
    )
    tests = "".join(
        f'\n[[tests]]\nquery = "{query}"\nanswer = "{answer}"'
        for query, answer in others.get("tests", ())  # type: ignore[attr-defined]
    )
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(
        f'name = "{name}"\ndomain = "small"\nabout = "Writes haiku."\n{pairs}{tests}\n', "utf-8"
    )
    return folder


def test_tests_that_leak_are_left_out(tmp_path: Path) -> None:
    tests = (("A seeds haiku?", "x"), ("B?", "Rain, stream."), ("C?", "clean"), ("C?", "clean"))
    cast = load_cast(folder=own(tmp_path / "mine", tests=tests))
    assert [each.query for each in cast.agents[0].tests] == ["C?"] and cast.left_out == 3 and not cast.rubrics


def lines(*texts: str) -> str:
    return "\n".join(
        json.dumps({"messages": [{"role": "user", "content": f"{t}?"}, {"role": "assistant", "content": t}]})
        for t in texts
    )


def test_the_published_folders_are_split_into_genres(tmp_path: Path) -> None:
    blocks = {
        "literature": ["limerick 0", *(f"wuyanlushi {n}" for n in range(40)), *(f"limerick {n}" for n in range(1, 40)),
                       *(f"sonnet {n}" for n in range(40))],
        "logic": [f"{genre} {n}" for genre in ("riddle", "pun", "puzzle") for n in range(40)],
        "plans": [f"{genre} {n}" for genre in ("travel", "study", "fitness") for n in range(40)],
    }  # fmt: skip
    for domain, (where, pool, problems, genres) in DOMAINS.items():
        (tmp_path / where).mkdir()
        seeds = [f"{genre} seed {n}" for genre in genres for n in range(20)]
        (tmp_path / where / f"{pool}.jsonl").write_text(lines(*seeds))
        (tmp_path / where / f"{problems}.jsonl").write_text(lines(*blocks[domain]))
        for genre in genres:
            (tmp_path / where / f"{TESTS[genre]}.jsonl").write_text(lines(f"{genre} test", f"{genre} seed 3"))
    cast = load_cast(folder=tmp_path)
    assert {each.name for each in cast.agents} == set(ABOUT) and cast.left_out == 9
    assert set(cast.rubrics) == set(DOMAINS)
    for agent in cast.agents:
        assert (len(agent.seeds), len(agent.stream), len(agent.tests)) == (20, 40, 1)
        assert all(each.answer.startswith(agent.name) for each in exchanges(agent))


def test_a_missing_file_of_the_published_data_is_not_called_malformed(tmp_path: Path) -> None:
    for where, *_ in DOMAINS.values():
        (tmp_path / where).mkdir()
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_cast(folder=tmp_path)
