"""Prompt text may come from any source: it is a template, not a program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mindstream.coach.belief.plan import CoachingPlan, PlanStep
from mindstream.coach.packs.load import load
from mindstream.errors import SettingsError
from mindstream.memory.conversation import Line
from mindstream.models.prompt import MAX_TEMPLATE, templates
from mindstream.models.rules import FakeModel
from mindstream.models.wrappers.override import PromptOverride
from mindstream.service.prompts import prompts

FIELDS: dict[str, Any] = {
    "text": "<b> I cannot sleep",
    "long": "x" * 30_000,
    "names": ("ann", "bob"),
    "belief": {"goals": ["sleep"]},
    "plan": CoachingPlan(steps=[PlanStep(title="walk", state="now")]),
    "line": Line(by_user=True, text="hi"),
    "pack": load("sleep"),
    "on": True,
}

REFUSED = {
    "a shell": "{{ cycler.__init__.__globals__.os.system('touch owned') }}",
    "a shell by lipsum": "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "a shell by a field": "{{ plan.__class__.__mro__ }}",
    "a name by a filter": "{{ plan | attr('__class__') }}",
    "a name in pieces": "{{ plan['__cl' + 'ass__'] }}",
    "a name in a format": "{{ '{0.__class__}'.format(plan) }}",
    "a method": "{{ plan.model_dump_json() }}",
    "a change": "{{ belief.update({'a': 1}) }}",
    "a global": "{{ range(3) }}",
    "a file": "{% include '/etc/passwd' %}",
    "a macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "an endless loop": "{% for a in names recursive %}{{ loop(names) }}{% endfor %}",
    "a loop in a loop": "{% for a in long %}{% for b in long %}.{% endfor %}{% endfor %}",
    "a loop over numbers": "{% for a in range(99999999) %}.{% endfor %}",
    "a product": "{{ 'x' * 999999999 }}",
    "a power": "{{ 9 ** 9 ** 9 ** 9 }}",
    "a wide text": "{{ text | center(999999999) }}",
    "an exact round": "{{ 1 | round(999999999, 'ceil') }}",
    "filler": "{{ text | batch(999999999, 'x') | list }}",
    "replacements in a chain": "{{ 'x'" + " | replace('x', 'xxxxxxxxxx')" * 12 + " }}",
    "doublings": "{% set a = long %}" + "{% set a = a + a %}" * 40,
    "escapes in a chain": "{{ '\"'" + " | tojson" * 40 + " }}",
    "a long text": "{% for a in long %}{{ long }}{% endfor %}",
    "calls without end": "{% for a in long %}{% if plan.written() == pack | string %}{% endif %}{% endfor %}",
    "braces without end": "{{" * 20_000,
    "brackets without end": "{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}",
    "ifs without end": "{% if on %}" * 500 + "{% endif %}" * 500,
    "a division by nothing": "{{ 1 is divisibleby 0 }}",
    "an unknown name": "{{ tetx }}",
    "an unknown filter": "{{ text | upper | shout }}",
    "an open tag": "{{ text ",
    "too many words": "x" * (MAX_TEMPLATE + 1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_template_syntax_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match="the text of the prompt 'talk'") as refused:
        templates(f"# user\n{REFUSED[name]}", "talk")[1](FIELDS)
    assert len(str(refused.value)) < 500 and not list(tmp_path.iterdir())


RENDERED = {
    "{{ text }}": "<b> I cannot sleep",
    "{{ text | data('said') }}": "<said>\n&lt;b> I cannot sleep\n</said>",
    "{{ text | short('said') }}": "<said>&lt;b> I cannot sleep</said>",
    "{% if on and not text == 'x' %}a{% elif text %}b{% else %}c{% endif %}": "a",
    "{% for name in names %}{{ loop.index }}. {{ name | upper }}{% if not loop.last %}; {% endif %}{% endfor %}": (
        "1. ANN; 2. BOB"
    ),
    "{{ names | join(', ') }} ({{ names | length }})": "ann, bob (2)",
    "{{ names | listed }}": "ann\nbob",
    "{{ names | numbered }}": "1. ann\n2. bob",
    "{{ belief | tojson }}": '{"goals": ["sleep"]}',
    "{{ belief.goals | first }} {{ belief['goals'][0] }} {{ names | last }}": "sleep sleep bob",
    "{% for key, held in belief.items() %}{{ key }}={{ held | join }}{% endfor %}": "goals=sleep",
    "{{ plan.written(full=true) }}": "- walk (now, not told yet)",
    "{{ plan.now.title | title }}": "Walk",
    "{{ pack.phases[:2] | map(attribute='name') | join('/') }}": "understanding/exploring",
    "{% set who = text[4:5] %}{{ who | default('x') }}{{ nobody | default('y') }}": "Iy",
    "{{ 'a' if text is string else 'b' }}{{ (names + names) | length }}": "a4",
    "{# nothing #}{% raw %}{{ text }}{% endraw %}": "{{ text }}",
}


@pytest.mark.parametrize("words", RENDERED)
def test_supported_template_syntax_is_rendered(words: str) -> None:
    system, user = templates(f"# system\nstatic\n# user\n{words}", "talk")
    expected = RENDERED[words]
    if "phases" in words:
        expected = "/".join(phase.name for phase in FIELDS["pack"].phases[:2])
    assert (system({}), user(FIELDS)) == ("static", expected)


def test_template_errors_name_the_line() -> None:
    words = "# system\nBe kind.\n\n# user\nHello\n{{ text.__class__ }}"
    with pytest.raises(SettingsError, match=r"'talk', line 6: '__class__' cannot be used: it begins with _"):
        templates(words, "talk")
    with pytest.raises(SettingsError, match=r"line 3: '\*' cannot be used"):
        templates("# user\n\n{{ 'x' * 9 }}", "talk")
    with pytest.raises(SettingsError, match="has no line '# system' or '# user'"):
        templates("Hello", "talk")


@pytest.mark.parametrize("words", prompts(), ids=lambda words: words.name)
def test_the_shipped_prompts_are_valid_templates(words: Any) -> None:
    assert templates(words.shipped.read_text("utf-8"), words.name)


# Prompts in files.


@pytest.mark.parametrize("words", ["{{ cycler.__init__ }}", "{{ text"])
def test_a_prompt_folder_with_an_invalid_template_is_refused(words: str, tmp_path: Path) -> None:
    path = tmp_path / "talk.md"
    path.write_text(f"# user\n{words}")
    (tmp_path / "README.md").write_text("{{ just a note }}")
    with pytest.raises(SettingsError, match=str(path)):
        PromptOverride(FakeModel({}), tmp_path)
    with pytest.raises(SettingsError, match=str(path)):
        prompts(tmp_path)


def test_special_files_are_refused_as_prompts(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "talk.md")
    for use in (lambda: PromptOverride(FakeModel({}), tmp_path), lambda: prompts(tmp_path)):
        with pytest.raises(SettingsError, match=f"{path} is not a regular file"):
            use()
